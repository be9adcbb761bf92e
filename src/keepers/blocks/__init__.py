"""Tables larger than memory, or than one machine: blocks of rows, and Dask."""
