import pytest

from proxy.emulator.faults.asking import read_armed, read_fault, read_marks
from proxy.emulator.faults.table import FAULTS


def test_a_marker_is_found_in_any_text_of_any_body():
    body = b'{"a":[{"text":"x [[fault:slow gate=a at=3]] y"}],"b":"[[fault:429]]"}'
    assert read_marks(body, "cut after=1; hang", FAULTS) == [
        ("cut", {"after": "1"}),
        ("hang", {}),
        ("slow", {"gate": "a", "at": "3"}),
        ("429", {}),
    ]


def test_text_that_only_looks_alike_is_left_alone():
    assert read_marks(b"[fault:429] [[fault 429]] [[fault:]] {{fault:429}}", None, FAULTS) == []


def test_an_unknown_fault_is_an_error():
    with pytest.raises(ValueError, match="no fault 'nonsense'"):
        read_fault("nonsense a=b", FAULTS)


def test_an_armed_fault_says_when_it_acts():
    row = read_armed("429 retry=5 times=2 prefix=/v1/gateway/mcp/ method=POST", FAULTS)
    assert (row.name, row.params, row.times) == ("429", {"retry": "5"}, 2)
    assert row.meets("POST", "/v1/gateway/mcp/calc/")
    assert not row.meets("GET", "/v1/gateway/mcp/calc/")
    assert not row.meets("POST", "/v1/gateway/responses/")


async def test_an_armed_fault_acts_as_often_as_it_was_asked_to(api):
    api.gateway.set_fault("429", times=2, prefix="/v1/gateway/chat/", retry=7)
    assert [(await api.chat()).status for _ in range(3)] == [429, 429, 200]
    api.gateway.set_fault("503")
    assert [(await api.get("models/")).status for _ in range(2)] == [503, 503]
    api.gateway.clear_faults()
    assert (await api.get("models/")).status == 200


async def test_a_fault_asked_for_wrongly_shows(api):
    assert (await api.chat("[[fault:nonsense]]")).status == 400
    assert (await api.chat("[[fault:raw name=unknown]]")).status == 400
    assert (await api.chat("[[fault:cut after=x]]")).status == 400
    with pytest.raises(ValueError, match="nonsense"):
        api.gateway.set_fault("nonsense")


async def test_faults_can_be_armed_from_the_start(emulated):
    async with emulated(faults=("402 times=1",)) as api:
        assert [(await api.chat()).status for _ in range(2)] == [402, 200]
