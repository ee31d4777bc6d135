"""gpureport: what became of yesterday's GPU-hours."""

__version__ = "0.1.0"
