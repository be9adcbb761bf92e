"""Parts of `tools/fuzz_files.py`: odd tables, their writers, mutations, and reading processes."""
