"""Sluicegate: a local proxy that keeps budgets, turns and answers in front of a credit-billed AI gateway.

Five nouns open every room of this package. A *caller* sends a request with a *virtual key*, which names a *team*.
A request that needs the gateway becomes an *exchange*: one upstream call that owns its *hold* (reserved credits) and
its *ending*. What an ending costs is the *charge*, and the *ledger* keeps every one. `docs/architecture.md` is the map.
"""

__version__ = "0.1.0"
