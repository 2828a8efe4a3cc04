"""Judge kinds: a file each, found by its name in the config."""
