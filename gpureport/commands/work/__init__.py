"""What each command does with a configuration. The only place where stages meet."""
