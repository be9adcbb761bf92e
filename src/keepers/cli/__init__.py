"""The command line: what is asked, what is printed, what is written."""
