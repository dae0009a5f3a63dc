"""
Coverage-guided fuzzing; see README.md beside this file. Nothing here is a trial test.
"""
