"""From a table as people have it to one that a selector takes, and what there is to know of it."""
