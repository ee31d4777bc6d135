"""A day of the lake becomes facts, and facts of a period become the tables of its report: SQL in order, and what Python adds."""
