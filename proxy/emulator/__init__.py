"""The gateway's double: a real server on a real port that answers as the gateway documents.

It stands alone: nothing of the rest of `proxy` is imported here, so that it cannot share a mistake with what it tests.
`gateway.py` runs it, `routes.py` is the list of what it serves, one room per family of endpoints decides the answers,
`assumptions.py` says what is assumed where the documentation is silent, `faults.py` names everything that can go wrong.
"""
