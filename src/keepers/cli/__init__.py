"""The commands: options, reading, results on the terminal and in files."""
