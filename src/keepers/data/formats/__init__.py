"""One module a format; `registry` lists them."""
