"""Data sets and files in, tables out; the public names are in `keepers.datasets`."""
