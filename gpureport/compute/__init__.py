"""Compute the facts of each day from the lake, and the tables of a report from the facts of its period."""
