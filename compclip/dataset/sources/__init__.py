"""Dataset sources: one file each, found by its name in the config."""
