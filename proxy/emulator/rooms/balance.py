"""The credit balance of the member that asks."""

from proxy.emulator.answers import Answer, json_answer
from proxy.emulator.assumptions import BALANCE_FIELD
from proxy.emulator.money import credit_number
from proxy.emulator.world import Call, World


def balance(world: World, call: Call) -> Answer:
    return json_answer({BALANCE_FIELD: credit_number(world.balances[call.member])})
