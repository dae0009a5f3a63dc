"""
What a console and its routers agree on, as plain functions on plain values.
"""
