"""Values as text: formats of figures, rows on a terminal, the log, and characters that do nothing where they are shown."""
