"""What gpureport asks of the process that it runs in: machine code, folders to spill into, no search for garbage."""
