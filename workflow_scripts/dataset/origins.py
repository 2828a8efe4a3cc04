"""Files that others publish: their addresses, and the sha256 that each must have.

The sha256 is the config's, else the published one. If there is neither, that of the first readable download is
recorded beside it in the cache (``NAME.sha256``, as ``sha256sum`` writes it), and later downloads, from any mirror,
must match it. A local file without a sha256 in the config is not checked.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workflow_scripts.core.cli import log
from workflow_scripts.core.digests import sha256
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import write_text
from workflow_scripts.dataset.download import download_place, fetch, is_remote, join, local_path


@dataclass(frozen=True)
class Published:
    """Addresses, tried in order, and the sha256 published for their file."""

    addresses: tuple[str, ...]
    sha256: str | None = None


@dataclass(frozen=True)
class Candidate:
    """One place where a file may be; ``name`` is the file's, if the address has none."""

    address: str
    name: str = ""
    sha256: str | None = None
    checked: str = "unchecked"


@dataclass(frozen=True)
class Obtained:
    """A local file."""

    path: Path
    sha256: str
    checked: str  # where its expected sha256 comes from: given, published, recorded or unchecked
    record: Path | None = None  # where the sha256 of the first readable download is recorded

    def read_well(self) -> None:
        """Record the sha256 if this is the first download; to be called once the file has proved readable."""
        if self.record is not None and not self.record.exists():
            write_text(f"{self.sha256}  {self.path.name}\n", self.record)

    @property
    def summary(self) -> dict[str, Any]:
        """What ``dataset.json`` says of the file, without paths."""
        return {"sha256": self.sha256, "sum": self.checked}


def candidates(
    names: str | list[str], root: str | None, sha256: str | None, published: Mapping[str, Published]
) -> list[Candidate]:
    """Return the places where a file may be, in order; without a root, ``names`` may be keys of ``published``."""
    result = []
    for name in [names] if isinstance(names, str) else names:
        if root is None and name in published:
            known = published[name]
            expected = sha256 or known.sha256
            how = "given" if sha256 else "published" if expected else "recorded"
            result += [Candidate(address, name, expected, how) for address in known.addresses]
        else:
            address = name if root is None else join(root, name)
            how = "given" if sha256 else "recorded" if is_remote(address) else "unchecked"
            result.append(Candidate(address, "", sha256, how))
    return result


def obtain(places: Sequence[Candidate], cache: Path, pause: float = 1.0) -> Obtained:
    """Get the file from the first place that has it; local files and earlier downloads come first."""
    records = {p: _record(p, cache) for p in places if p.checked == "recorded"}
    kept = next((r for r in records.values() if r.exists()), None)
    recorded = _read_record(kept) if kept else None
    failures: list[str] = []
    for place in sorted(places, key=lambda p: not _is_here(p, cache)):
        expected = recorded if place.checked == "recorded" else place.sha256
        remedy = {
            "given": "correct the sha256 in the config",
            "published": "set this sha256 in the config to accept this version",
            "recorded": f"remove {kept}, which records the first download, to accept this version",
            "unchecked": "",
        }[place.checked]
        try:
            path = fetch(place.address, cache, expected, pause, place.name, remedy)
        except UserError as error:
            failures.append(str(error))
            if is_remote(place.address) and len(failures) < len(places):
                log.warning("%s; trying the next address", error)
            continue
        return Obtained(path, (expected or sha256(path)).lower(), place.checked, kept or records.get(place))
    raise UserError("; ".join(failures))


def unchecked(places: Iterable[Candidate]) -> list[Path | None]:
    """Return the local files without a sha256 in the config."""
    return [_local(place) for place in places if place.checked == "unchecked"]


def _is_here(place: Candidate, cache: Path) -> bool:
    if is_remote(place.address):
        return download_place(place.address, cache, place.name).exists()
    return (path := _local(place)) is not None and path.is_file()


def _local(place: Candidate) -> Path | None:
    """Return the place's path if it has one; for a faulty address, ``fetch`` raises the error."""
    with suppress(UserError):
        return local_path(place.address)
    return None


def _record(place: Candidate, cache: Path) -> Path:
    path = download_place(place.address, cache, place.name)
    return path.with_name(path.name + ".sha256")


def _read_record(record: Path) -> str:
    words = record.read_text(encoding="utf-8").split()
    if not words or len(words[0]) != 64:
        raise UserError(f"{record}: contains no sha256; remove it to record that of the next download")
    return words[0]
