"""
What is claimed of speed, as commands that print ratios: C{python -m benchmarks} and C{python -m benchmarks.guard}.

L{benchmarks.cases} says what is run and what is compared, as data; the other modules do it.
"""
