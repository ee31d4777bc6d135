"""What telemetry is known to get wrong, each trap with a few samples and what they mean, worked out by hand.

Tests have the names of the traps in our list (T1 to T20) and the numbers of the upstream threads that report them. The samples
of a module's tests are imported as a cluster each, into one lake with one report.
"""
