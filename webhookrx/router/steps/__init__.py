"""
Processing steps: what is done to each message of a connector.
"""
