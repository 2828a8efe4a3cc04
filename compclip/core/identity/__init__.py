"""Tell whether a result is still valid: by its code, its files and the cache's keys."""
