"""Drawn compounds: things, compounds of their names, pictures of them, and true captions."""
