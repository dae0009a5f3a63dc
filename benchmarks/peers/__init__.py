"""
The same job as webhookrx's, on what others would build it with.

They run in an interpreter of their own and import nothing of webhookrx.
"""
