"""Commands by purpose, and the options that they share."""
