"""
The whole receiver: what runs, alone or as several processes, and how it starts, reloads and ends.
"""
