"""What Snakemake's plugin for S3 lacks."""

import posixpath
from typing import Any
from urllib.parse import urlparse

from workflow_scripts.core.errors import UserError

# Seconds in which a store must answer.
PATIENCE = 10


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


def check_store(provider: Any, prefix: str) -> None:
    """UserError where S3, as the default ``provider``, does not answer, or ``prefix`` is no bucket of anybody's.

    Snakemake would ask for each file, for minutes, and print an exception for each.
    """
    if not hasattr(provider, "s3c"):
        return
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    bucket = urlparse(prefix).netloc
    if bucket == "BUCKET":
        raise UserError(
            f"default-storage-prefix: {prefix}: name your own bucket and folder, in the profile or by option"
        )
    given = provider.settings
    try:
        boto3.client(
            "s3",
            endpoint_url=given.endpoint_url,
            region_name=given.region,
            aws_access_key_id=given.access_key,
            aws_secret_access_key=given.secret_key,
            aws_session_token=given.token,
            config=Config(
                signature_version=given.signature_version,
                connect_timeout=PATIENCE,
                read_timeout=PATIENCE,
                retries={"total_max_attempts": 2},
            ),
        ).head_bucket(Bucket=bucket)
    except ClientError as error:
        # Who may not look at the bucket as a whole may still read and write in it.
        if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
            where = given.endpoint_url or "AWS"
            raise UserError(f"default-storage-prefix: {prefix}: there is no bucket {bucket} at {where}") from error
    except (BotoCoreError, ValueError) as error:
        raise UserError(f"object storage: {' '.join(str(error).split())}") from error
