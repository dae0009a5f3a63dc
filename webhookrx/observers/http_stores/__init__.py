"""Stores that are spoken to over HTTP: one observer for all of them, and a frozen value for each."""
