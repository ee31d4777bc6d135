"""Values that all stages share: times, tables, metric names, text, errors and process resources."""
