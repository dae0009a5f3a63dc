"""
HTTP/1.1 on the wire, and the resources behind it.
"""
