"""Servers on loopback for the tests: object storage that speaks S3's protocol, and SSH. They stop by themselves."""

import getpass
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

BUCKET = "shared"
# Made up; nothing here leaves loopback.
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}


@contextmanager
def credentials() -> Iterator[None]:
    """Made-up ones in the environment, for every client that is started meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        yield


class Quiet(WSGIRequestHandler):
    """Does not log every request."""

    def log_request(self, *_: Any) -> None:
        pass


class Storage:
    """An S3 server in threads of this process. ``failing``: from how many uploads on it answers 500; None: never."""

    def __init__(self) -> None:
        self.failing: int | None = None
        self.uploads = 0
        self.application = DomainDispatcherApplication(create_backend_app)
        self.server = make_server("127.0.0.1", 0, self, threaded=True, request_handler=Quiet)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        self.client = boto3.client(
            "s3",
            endpoint_url=self.address,
            region_name=CREDENTIALS["AWS_DEFAULT_REGION"],
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        )

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        if environ["REQUEST_METHOD"] in ("PUT", "POST") and self.failing is not None:
            self.uploads += 1
            if self.uploads > self.failing:
                start_response("500 Internal Server Error", [("Content-Length", "0")])
                return [b""]
        return self.application(environ, start_response)

    def keys(self, prefix: str = "") -> dict[str, int]:
        """Size of every object below ``prefix``, by its key."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return {one["Key"]: one["Size"] for page in pages for one in page.get("Contents", ())}

    def read(self, key: str) -> bytes:
        return self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()

    def empty(self) -> None:
        """No objects, and no failures any more."""
        self.failing, self.uploads = None, 0
        for key in self.keys():
            self.client.delete_object(Bucket=BUCKET, Key=key)


@contextmanager
def object_storage() -> Iterator[Storage]:
    """A server with an empty bucket."""
    storage = Storage()
    thread = threading.Thread(target=storage.server.serve_forever, daemon=True)
    thread.start()
    try:
        storage.client.create_bucket(Bucket=BUCKET)
        yield storage
    finally:
        storage.server.shutdown()
        storage.server.server_close()
        thread.join()


@dataclass(frozen=True)
class Ssh:
    """Where a server listens, and the key that opens it."""

    user: str
    port: int
    key: Path


@contextmanager
def ssh_server(folder: Path) -> Iterator[Ssh]:
    """OpenSSH's server as this user, with keys made for it in ``folder``; skips the test where there is none."""
    sshd = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if sshd is None or shutil.which("ssh-keygen") is None:
        pytest.skip("no sshd: install openssh-server")
    if os.geteuid() == 0:
        # Root's server drops its privileges into this folder, which the package makes when it starts the service.
        try:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        except OSError as error:
            pytest.skip(f"sshd as root needs /run/sshd: {error}")
    folder.mkdir(parents=True)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    (folder / "known").write_bytes((folder / "user.pub").read_bytes())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder}/host\nPidFile none\nAuthorizedKeysFile {folder}/known\n"
        "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n"
        "Subsystem sftp internal-sftp\n"
    )
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen([sshd, "-D", "-e", "-f", folder / "config"], stderr=log) as server,
    ):
        try:
            deadline = time.monotonic() + 20
            while socket.socket().connect_ex(("127.0.0.1", port)):
                if server.poll() is not None or time.monotonic() > deadline:
                    pytest.skip(f"sshd does not start: {(folder / 'log').read_text().strip()}")
                time.sleep(0.05)
            yield Ssh(getpass.getuser(), port, folder / "user")
        finally:
            server.terminate()
