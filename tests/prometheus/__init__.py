"""The Prometheus source against real servers, and against small ones that answer as others have been seen to."""
