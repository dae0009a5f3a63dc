"""
The HTTP API of the console: one table of routes, from which dispatch, its description and its tests come.
"""
