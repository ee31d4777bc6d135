"""Rules of schedulers: fair share of each quota, pods over quota, and pods that may be preempted.

Pure functions on plain values; no module here reads a lake, a clock or a configuration.
"""
