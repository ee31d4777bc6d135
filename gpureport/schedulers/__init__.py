"""How schedulers share: what each quota may have, which pods are over quota, and who may preempt whom.

Pure rules on plain values; nothing here reads a lake, a clock or a configuration.
"""
