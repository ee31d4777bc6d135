"""The recording of a real H200, told again as each exporter era and label habit would have told it."""
