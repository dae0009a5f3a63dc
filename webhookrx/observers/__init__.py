"""Observers: what takes messages, and says when they are safe."""
