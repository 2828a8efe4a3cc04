"""Limits on input files, so that malformed or hostile ones cannot exhaust memory or disk, or lose
digits.
"""

# Endings of the names of images, in lower case; of files with the same name, the first is taken.
IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
# Pixels of an image, at 3 bytes each. Pillow refuses larger images, too.
PIXELS = 178_956_970
# Ratio of an image's longer to its shorter side: judges scale the shorter side up to their size.
ASPECT = 500
# Bytes of an archive's files per byte of the archive; text reaches 20. Small archives may have any
# ratio.
ARCHIVE_RATIO = 200
ARCHIVE_SMALL_BYTES = 1 << 28
# Characters of a YAML file, which takes about 5 microseconds each to parse.
YAML_CHARACTERS = 1_000_000
# Bytes of a JSON file of a release or submission; Python takes some ten times as much memory. A
# submission of 100,000 images by ten judges has 80 MB.
JSON_BYTES = 1 << 28
# Bytes of any file of a release. A file of zeros takes no room on disk, but hours to read.
FILE_BYTES = 1 << 36
# Values of a YAML file, including those of aliases.
YAML_VALUES = 100_000
# Characters of a cell of a table, and of a caption that is parsed: some 4,000 words.
CELL = 1_000_000
CAPTION = 20_000
# Digits of an integer that compclip counts with, which float64 represents exactly.
COUNT_DIGITS = 15
# Above this, float64 skips integers, so two ids may become equal.
EXACT_FLOAT = 2**53


def over(name: str, what: str) -> str:
    """Return the fault for an error: ``what`` exceeds the limit ``name``."""
    return f"{what}, more than the limit of {globals()[name]:,} (core/limits.py: {name})"
