"""Tables from files, whole or in blocks of rows, and back to files."""
