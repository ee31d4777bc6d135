"""Process resources: compiled loops, temporary folders, workers, signals and garbage collection."""
