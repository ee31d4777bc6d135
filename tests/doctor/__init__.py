"""What `gpureport doctor` says, of small clusters on real servers and of single checks."""
