"""Where raw samples come from: servers and files, each handing over ``SeriesBatch``."""
