"""Drawn compounds: things and what compounds of their names show, pictures of them, captions that are true of them."""
