"""Real servers of stores and brokers, started, killed, frozen and cut off by tests."""
