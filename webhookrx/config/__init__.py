"""
From options and files to frozen settings.
"""
