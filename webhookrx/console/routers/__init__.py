"""
The routers of a console: who they are, what they have and what they are told, on a port of their own.
"""
