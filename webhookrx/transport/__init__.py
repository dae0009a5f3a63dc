"""
Ports and connections below HTTP: endpoints, TLS, the PROXY header, and overload.
"""
