"""Values as text: formats of figures, rows on a terminal, the log, and escapes of unsafe characters."""
