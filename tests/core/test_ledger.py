"""The moves a hold may make."""

from proxy.core.ledger import NEXT, Move, Phase


def test_every_phase_and_every_move_is_in_the_table():
    assert set(NEXT) == set(Phase)
    assert {move for moves in NEXT.values() for move in moves} == set(Move)
