"""
What operators see: counters, log lines, and the clock that nobody sets back.
"""
