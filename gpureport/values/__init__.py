"""Plain values that all stages share: times, tables, names of metrics, text, errors, and what the process has."""
