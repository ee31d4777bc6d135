"""Collection of samples and Kubernetes state into the lake: from servers, files and blocks."""
