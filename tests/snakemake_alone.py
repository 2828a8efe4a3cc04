"""Python as in an environment with Snakemake alone: only the standard library, and what Snakemake
needs, can be imported.
"""

import sys
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

OWN = {"compclip", "workflow_scripts", "tests"}


def needed_by(distribution: str) -> set[str]:
    """Return the installed distributions that one needs, itself included."""
    needed = set[str]()
    # Distributions with the extras that are asked for; "" is none.
    pending = {(canonicalize_name(distribution), "")}
    seen = set[tuple[str, str]]()
    while pending:
        name, extra = pending.pop()
        seen.add((name, extra))
        try:
            lines = requires(name) or []
        except PackageNotFoundError:  # of another platform
            continue
        needed.add(name)
        for requirement in map(Requirement, lines):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                further = canonicalize_name(requirement.name)
                pending |= {(further, wanted) for wanted in ("", *requirement.extras)} - seen
    return needed


def importable() -> set[str]:
    """Return the names of the modules that an environment with Snakemake alone has."""
    needed = needed_by("snakemake")
    brought = {
        module
        for module, distributions in packages_distributions().items()
        if needed & {canonicalize_name(distribution) for distribution in distributions}
    }
    return brought | set(sys.stdlib_module_names) | OWN


IMPORTABLE = importable()


class Finder(PathFinder):
    """Finds no other package."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        # sysconfig has a module named by the platform.
        is_known = fullname in IMPORTABLE or fullname.startswith("_sysconfigdata")
        if path is None and not is_known:
            return None
        return super().find_spec(fullname, path, target)


def hide_others() -> None:
    """Hide all other packages from this process."""
    sys.meta_path[:] = [BuiltinImporter, FrozenImporter, Finder]
