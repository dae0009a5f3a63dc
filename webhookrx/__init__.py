"""
Receives log messages by HTTP and HTTPS; a 200 means that the message is safe.
"""
