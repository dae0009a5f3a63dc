"""
The rules of a console, changed one at a time or as a whole file, and judged as the routers judge them.
"""
