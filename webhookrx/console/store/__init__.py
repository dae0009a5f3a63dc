"""The store of a console: one SQLite file with rules, their history, routers, people, counts and alarms."""
