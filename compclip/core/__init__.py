"""What every stage shares: configuration, files, randomness, errors, command lines."""
