"""Drawn birds: a world of parts and habits, pictures of its scenes, and true captions of them."""
