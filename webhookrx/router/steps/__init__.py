"""
Processing steps: what a connector does to each message.
"""
