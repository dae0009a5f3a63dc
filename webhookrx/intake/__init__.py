"""
The parts of the decision on a request, each a plain function on plain values.
"""
