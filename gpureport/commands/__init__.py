"""The commands, by what they are for, and the options that they share."""
