"""
The people of a console: passwords, sessions, API tokens, and how each proves who it is.
"""
