"""
The whole receiver, in one process or several: how it starts, reloads and ends.
"""
