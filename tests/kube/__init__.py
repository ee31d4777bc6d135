"""Kubernetes state into the lake: what a real scheduler decided, through files and through the real client."""
