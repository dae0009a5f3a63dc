"""
The server side of TLS: keys and chains, the client-certificate policy, and why a handshake failed.
"""
