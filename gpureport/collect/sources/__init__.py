"""Sources of raw samples: servers and files. Each returns ``SeriesBatch`` values."""
