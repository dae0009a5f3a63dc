"""
Taps: messages and refusals of a running receiver, shown to an operator while they pass.
"""
