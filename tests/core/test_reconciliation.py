from proxy.core.reconciliation import Reading, Span, Verdict, looked


def after(*readings):
    span = None
    for number, (balance, settled, held) in enumerate(readings):
        span = looked(span, Reading(float(number), balance, settled, held))
    return span


def told(*readings):
    span = after(*readings)
    return span.fall, span.settled, span.drift, span.foreign, span.verdict


def test_a_balance_that_falls_by_what_was_settled_agrees():
    assert told((1000, 0, 0), (900, 100, 0), (850, 150, 0)) == (150, 150, 0, 0, Verdict.AGREES)


def test_what_the_ledger_does_not_explain_is_foreign():
    assert told((1000, 0, 0), (880, 100, 0)) == (120, 100, 20, 20, Verdict.FOREIGN)


def test_a_difference_within_what_open_calls_hold_is_none():
    assert told((1000, 0, 0), (880, 100, 30)) == (120, 100, 20, 0, Verdict.AGREES)
    # Charged before the first look, settled after it.
    assert told((1000, 0, 50), (1000, 40, 0)) == (0, 40, -40, 0, Verdict.AGREES)


def test_a_ledger_that_settled_more_is_overbooked():
    assert told((1000, 0, 0), (950, 80, 0))[-1] is Verdict.OVERBOOKED


def test_what_is_put_on_the_balance_is_no_drift():
    span = after((100, 0, 0), (40, 60, 0), (1030, 70, 0), (1000, 100, 0))
    assert (span.added, span.fall, span.drift, span.verdict) == (1000, 100, 0, Verdict.AGREES)


def test_the_first_look_says_nothing():
    assert after((5, 3, 1)) == Span(Reading(0.0, 5, 3, 1), Reading(0.0, 5, 3, 1))
