"""Dataset sources: a file each, found by its name in the config."""
