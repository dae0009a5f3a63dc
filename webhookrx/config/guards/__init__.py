"""
The guards of sources and connectors, made of options or fields of rules, and of the files that these name.
"""
