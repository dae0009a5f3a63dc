"""
The decisions on who may send to a source, one after the other, on plain values.
"""
