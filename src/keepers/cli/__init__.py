"""The commands select, tune and apply, and how a command speaks."""
