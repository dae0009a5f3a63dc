"""
What the routers have counted: taken from their reports, summed by steps of time, and asked for by labels.
"""
