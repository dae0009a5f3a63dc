"""Messages on disk that still wait for an observer."""
