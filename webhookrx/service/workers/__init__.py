"""
Several processes that receive as one: what they say to each other, and when they are started.
"""
