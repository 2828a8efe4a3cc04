"""What Snakemake's plugin for S3 lacks."""

from __future__ import annotations

import posixpath
from typing import Any
from urllib.parse import urlparse


def follow_constraints(provider: Any) -> None:
    """Let the local path of an output on S3 follow its address; provider: the default one, or None.

    Snakemake writes a rule's wildcard constraints into the address after the plugin (0.3.6) has kept the local path
    that it had without them, and matches local paths: so constraints would count for nothing, and rules that they
    tell apart would be ambiguous.
    """
    kind = provider and type(provider).get_storage_object_cls()
    if hasattr(kind, "_local_suffix_from_key"):

        def local_suffix(self: Any) -> str:
            return self._local_suffix_from_key(posixpath.normpath(urlparse(self.query).path.lstrip("/")))

        kind.local_suffix = local_suffix
