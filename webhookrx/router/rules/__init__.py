"""
Connector rules: read from a file, checked, and matched with this router.
"""
