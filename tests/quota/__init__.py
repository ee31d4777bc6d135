"""Quotas over time: a simulated week against an oracle that looks at every instant, and what must hold of any cluster."""
