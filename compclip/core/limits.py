"""Limits on what is read, so that strange or hostile files cannot exhaust memory or disk, or lose digits."""

# Pixels of an image, which take 3 bytes each. Pillow refuses larger images, too.
PIXELS = 178_956_970
# Longer side of an image in shorter ones: judges scale the shorter side up to theirs.
ASPECT = 500
# Bytes of an archive's files, relative to the archive's own; text reaches 20. Small archives may have any ratio.
ARCHIVE_RATIO = 200
ARCHIVE_SMALL_BYTES = 1 << 28
# Values of a YAML file, with those of aliases.
YAML_VALUES = 100_000
# Characters of a cell of a table, and of a caption that is parsed: some 4,000 words.
CELL = 1_000_000
CAPTION = 20_000
# Digits of a whole number that compclip counts with, which float64 holds.
COUNT_DIGITS = 15
# Beyond it float64 skips whole numbers, so that two ids may become one.
EXACT_FLOAT = 2**53


def over(name: str, what: str) -> str:
    """Say in an error that ``what`` exceeds a limit."""
    return f"{what}, more than the limit of {globals()[name]:,} (core/limits.py: {name})"
