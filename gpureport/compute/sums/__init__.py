"""Sums over the rows of a part of the lake, as compiled loops. Rows of a device are adjacent, so a loop reads memory in order.

The SQL over the samples defines each sum; a test compares the loops with it, bit for bit.
"""
