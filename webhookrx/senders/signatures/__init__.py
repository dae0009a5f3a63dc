"""How senders prove that a request is theirs: signatures and shared secrets, as data."""
