"""
Observers of stores beside the clients that they use, alone: what is left of a client's speed.
"""
