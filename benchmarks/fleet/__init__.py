"""
What a thousand routers cost their console.
"""
