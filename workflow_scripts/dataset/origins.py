"""Files that others publish: where they are to be had, and which sum they must have.

A file's sum is the config's, else the one published for it. Where there is neither, the sum of the first download
that could be read is kept beside it in the cache (``NAME.sha256``, as ``sha256sum`` writes it), and later ones,
from whatever mirror, must have it too. A local file without a sum in the config is taken as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.fingerprint import fingerprint as fingerprint_of
from workflow_scripts.core.io import write_text
from workflow_scripts.dataset.download import download_place, fetch, is_remote, join, local_path, sha256_of

SHA256 = r"^[0-9a-fA-F]{64}$"


def _checked(value: object) -> object:
    names = value if isinstance(value, list) else [value]
    if value is not None and not (names and all(isinstance(name, str) and name for name in names)):
        raise ValueError("must be a name or an address, or a list of them")
    return value


# A name below the root, an address, or several, in the config.
Names = Annotated[str | list[str], BeforeValidator(_checked)]
NamesOrNone = Annotated[str | list[str] | None, BeforeValidator(_checked)]


@dataclass(frozen=True)
class Published:
    """Addresses, tried in order, and the sha256 that somebody has published for what is there."""

    addresses: tuple[str, ...]
    sha256: str | None = None


@dataclass(frozen=True)
class Candidate:
    """One place where a file may be; ``name`` is the file's, where the address says none."""

    address: str
    name: str = ""
    sha256: str | None = None
    checked: str = "unchecked"


@dataclass(frozen=True)
class Obtained:
    """A file that is here. ``checked``: its sum is the one that was given, published, recorded, or unchecked."""

    path: Path
    sha256: str
    checked: str
    record: Path | None = None

    def read_well(self) -> None:
        """To be called once the file proved readable: its sum is kept, if it is the first download's."""
        if self.record is not None and not self.record.exists():
            write_text(f"{self.sha256}  {self.path.name}\n", self.record)

    @property
    def summary(self) -> dict[str, Any]:
        """For ``dataset.json``: what must be equal for equal results, and nothing of this machine."""
        return {"sha256": self.sha256, "sum": self.checked}


def candidates(
    names: str | list[str], root: str | None, sha256: str | None, published: Mapping[str, Published]
) -> list[Candidate]:
    """Where a file may be, in order.

    A name is an address, or below ``root``, or, where there is no root, a key of ``published`` or a plain path.
    """
    found = []
    for name in [names] if isinstance(names, str) else names:
        if root is None and name in published:
            known = published[name]
            expected = sha256 or known.sha256
            how = "given" if sha256 else "published" if expected else "recorded"
            found += [Candidate(address, name, expected, how) for address in known.addresses]
        else:
            address = name if root is None else join(root, name)
            how = "given" if sha256 else "recorded" if is_remote(address) else "unchecked"
            found.append(Candidate(address, "", sha256, how))
    return found


def obtain(places: Sequence[Candidate], cache: Path, pause: float = 1.0) -> Obtained:
    """The first of the places that has the file; one that is here goes before one that is not.

    ``pause`` as in ``fetch``. Raises UserError where none has it, with what is wrong with each.
    """
    records = {p: _record(p, cache) for p in places if p.checked == "recorded"}
    kept = next((r for r in records.values() if r.exists()), None)
    recorded = _read_record(kept) if kept else None
    failures: list[str] = []
    for place in sorted(places, key=lambda p: not _is_here(p, cache)):
        expected = recorded if place.checked == "recorded" else place.sha256
        remedy = {
            "given": "correct the sum in the config",
            "published": "name this sum in the config to take this version",
            "recorded": f"remove {kept}, which holds the sum of its first use, to take this version",
            "unchecked": "",
        }[place.checked]
        try:
            path = fetch(place.address, cache, expected, pause, place.name, remedy)
        except UserError as error:
            failures.append(str(error))
            if is_remote(place.address) and len(failures) < len(places):
                log.warning("%s: the next address is tried", error)
            continue
        return Obtained(path, (expected or sha256_of(path)).lower(), place.checked, kept or records.get(place))
    raise UserError("; ".join(failures))


def fingerprint(*places: Sequence[Candidate]) -> str:
    """Changes when a local file does that no sum in the config holds fast."""
    return fingerprint_of(*(_local(p) for group in places for p in group if p.checked == "unchecked"))


def _is_here(place: Candidate, cache: Path) -> bool:
    if is_remote(place.address):
        return download_place(place.address, cache, place.name).exists()
    return (path := _local(place)) is not None and path.is_file()


def _local(place: Candidate) -> Path | None:
    """Its path, where it has one; ``fetch`` says what is wrong with an address that has none."""
    with suppress(UserError):
        return local_path(place.address)
    return None


def _record(place: Candidate, cache: Path) -> Path:
    path = download_place(place.address, cache, place.name)
    return path.with_name(path.name + ".sha256")


def _read_record(record: Path) -> str:
    words = record.read_text(encoding="utf-8").split()
    if not words or len(words[0]) != 64:
        raise UserError(f"{record}: holds no sha256: remove it, and the next download's sum is kept")
    return words[0]
