"""
Several processes that receive as one: a parent that opens the ports, and workers that accept from them.
"""
