"""The producer/consumer chain: from an accepted message to the word of every observer that it is safe."""
