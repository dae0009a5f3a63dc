"""
The management console: rules for many routers, looked into and changed from one place.
"""
