"""Sums over the rows of a part of the lake, as compiled loops: a device's rows lie side by side, so a sum is a run over memory.

The SQL over the samples says what each sum is; a test holds the loops to it, bit for bit.
"""
