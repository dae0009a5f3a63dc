"""
Trials: what a source or a connector would make of a recorded request, decision by decision and step by step.
"""
