"""Samples and Kubernetes' state into the lake: from servers, from files, from blocks."""
