"""
The agent: what a router does for its console, and all that it lets the console do.
"""
