"""
The alarms of a console: its routers are looked at now and then, and people are told of what is not right.
"""
