"""The claims of the SPCAFS paper, held against a study."""
