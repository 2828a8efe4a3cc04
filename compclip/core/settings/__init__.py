"""Check what callers give: sections of the config, arguments, options of commands."""
