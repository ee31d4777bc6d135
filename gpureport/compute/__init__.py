"""A day of the lake becomes facts: its SQL in order, and what Python adds of other days and of schedulers' own rules."""
