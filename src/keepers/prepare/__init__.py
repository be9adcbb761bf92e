"""Columns to numbers: what each column holds, how it is encoded, and what to know beforehand."""
