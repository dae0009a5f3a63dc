"""
Taps of a console: messages of many routers, shown to one person while they pass.
"""
