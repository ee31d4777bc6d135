"""Rules of schedulers: each quota's share, pods over quota, and permitted preemption.

Pure rules on plain values; nothing here reads a lake, a clock or a configuration.
"""
