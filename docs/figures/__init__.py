"""Figures and tables of the pages, drawn when the site is built."""
