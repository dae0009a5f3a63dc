"""
The settings of a console that admins change while it runs, each saved with its history.
"""
