"""Write and read the files of a run: whole or not at all, with equal bytes for equal content."""
