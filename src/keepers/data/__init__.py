"""Data sets and files in, tables out."""

from keepers.data.bundled import Dataset, load, names

__all__ = ["Dataset", "load", "names"]
