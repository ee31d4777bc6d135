"""Sources of raw samples: servers and files, each handing over ``SeriesBatch``."""
