"""Benchmarks: each prints what is compared side by side in one run; see docs/benchmarks.md."""
