"""Messages to a stream of Redis, by redis-py."""
