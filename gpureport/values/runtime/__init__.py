"""Process resources: machine code, folders to spill into, no garbage collection."""
