"""
Messages, and what is written of them.
"""
