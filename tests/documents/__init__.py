"""The documents that are generated: schema, figures, metrics, findings, conformance, and the index of the queries."""
