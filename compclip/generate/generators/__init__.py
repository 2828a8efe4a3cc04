"""Generators: a file each, found by its kind in the config."""
