"""Quotas over time: a simulated week against an oracle that checks every instant, and what must hold of any cluster."""
