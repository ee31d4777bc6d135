"""Servers and texts that mean harm."""
