"""Work of each command with a configuration. The only place where stages meet."""
