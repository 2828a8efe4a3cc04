"""Check that the files of the data set exist, begin as they should, and say how much there is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from workflow_scripts.core import plugins
from workflow_scripts.core.checks import Findings
from workflow_scripts.core.disk import size_text
from workflow_scripts.dataset.choice import SOURCES
from workflow_scripts.dataset.download import Candidate, is_remote

# Bytes of a drawn image of 96 x 96 pixels, and of a caption in the tables.
SKETCH, CAPTION = 4_000, 400
# Bytes of all tables for a byte of the user's captions.
TABLES = 5


def is_scored(config: Any) -> bool:
    """Return whether images are generated and judged: the source has images, and there are generators."""
    has_images = getattr(getattr(config.dataset, config.dataset.source), "images", ...) is not None
    return has_images and bool(config.generate.generators)


def tables(config: Any) -> set[str]:
    """Return the tables that the source makes beside captions and images."""
    return {*getattr(plugins.load(SOURCES, config.dataset.source), "TABLES", ())}


def check(config: Any, findings: Findings) -> None:
    """Check the paths of the chosen source: ``file``, ``data``, ``classes``, ``images``, and published archives."""
    name = config.dataset.source
    key = f"dataset.{name}"
    settings = getattr(config.dataset, name)
    source = plugins.load(SOURCES, name)
    about = []
    if name == "sketch":
        images = min(settings.images, config.dataset.limit or settings.images)
        captions = images * settings.captions
        about.append(f"{images:,} images, {captions:,} captions, drawn")
        findings.bytes += round(images * SKETCH * (settings.size / 96) ** 2) + captions * CAPTION
    elif hasattr(settings, "places"):
        about += [
            text
            for field, places in settings.places().items()
            if (text := _archive(f"{key}.{field}", places, Path(config.cache), findings))
        ]
    else:
        about += _files(key, settings, findings, getattr(source, "preview", None))
    limit = f"; at most {config.dataset.limit:,} images" if config.dataset.limit else ""
    findings.plan.append(("data set", f"{config.dataset.name or name}: {', '.join(about) or 'not found'}{limit}"))


def _files(key: str, settings: Any, findings: Findings, preview: Callable[[Any], str | None] | None) -> list[str]:
    """Check local files and the folder of images; return what there is."""
    about = []
    for field in ("file", "data", "classes"):
        path = getattr(settings, field, None)
        # The classes of published images may be their numbers.
        if path and (field, path) != ("classes", "number") and findings.exists(f"{key}.{field}", path):
            size = Path(path).stat().st_size
            about.append(f"{path} ({size_text(size)})")
            findings.bytes += TABLES * size
            if not size:
                findings.error(f"{key}.{field}", f"{path}: empty file; give the file of captions")
            elif field == "file" and preview is not None:
                with findings.errors_of(f"{key}.file"):
                    if warning := preview(settings):
                        findings.warn(f"{key}.file", warning)
    if settings.images is None:
        about.append("captions without images: they are split, and nothing is judged")
    elif findings.exists(f"{key}.images", settings.images, "folder"):
        counted = findings.count_images(f"{key}.images", settings.images)
        about.append(f"{counted} in {settings.images} ({size_text(counted.bytes)})")
    return about


def _archive(key: str, places: list[Candidate], cache: Path, findings: Findings) -> str | None:
    """Return which of the places has the file, or where it would be downloaded from."""
    for place in places:
        if (path := place.local(cache)).is_file() and not is_remote(place.address):
            findings.bytes += path.stat().st_size
            return f"{path} ({size_text(path.stat().st_size)})"
    if remote := [place for place in places if is_remote(place.address)]:
        kept = any(place.local(cache).exists() for place in remote)
        return f"{remote[0].name or remote[0].address} ({'in the cache' if kept else 'to be downloaded'})"
    findings.error(key, f"{', '.join(place.address for place in places)}: no such file; correct root or the name")
    return None
