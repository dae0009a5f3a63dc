"""
Counters, metrics, health, logs, signals and systemd.
"""
