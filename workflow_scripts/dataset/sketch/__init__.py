"""Drawn birds: a world of parts and habits, pictures of its scenes, captions that are true of them."""
