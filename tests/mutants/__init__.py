"""
Mutants of webhookrx: small faults put into its code one at a time, to see whether the tests notice.

C{python -m tests.mutants} says how many of them do; see C{tests/mutants/README.md}.
"""
