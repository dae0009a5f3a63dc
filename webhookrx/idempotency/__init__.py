"""The window in which a delivery that comes again is not stored again."""
