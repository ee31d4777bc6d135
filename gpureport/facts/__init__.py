"""What Python adds to the SQL of the facts: what is of a whole day or of other days, and the schedulers' own rules over steps."""
