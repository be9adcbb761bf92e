"""Reports: a summary, its figures, and one HTML file that opens offline."""
