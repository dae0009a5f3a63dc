"""
Proofs that a 200 is never a lie: the real program is killed, cut off, starved and overrun, and what it leaves is
compared with what it has answered.

    python -m tests.system.torture [NAME…] [--long] [--seed N]

Each proof prints its figures beside their goals. C{docs/explanation/how-durability-is-proved.md} describes each method,
with its figures.
"""
