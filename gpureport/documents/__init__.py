"""The documents that are generated: schema, figures, metrics, findings, and the index of the queries."""
