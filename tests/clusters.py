"""A world with its API on the wire, for tests that speak to it as clients do.

`running(world)` serves a world from a background thread and yields a `RunningApi`: the path of an administrator's
kubeconfig, a `kubectl` to call, an HTTP client, and the means to act inside the world's own thread.
"""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import httpx
import pytest
import yaml

from srearena.cluster.embedded.api.authentication import Credentials
from srearena.cluster.embedded.api.node_agent import NodeAgent
from srearena.cluster.embedded.api.server import ApiServer
from srearena.cluster.embedded.pacing import Pacer
from srearena.cluster.embedded.registry.identity import AUTHENTICATED, SUPERUSERS, User
from srearena.cluster.embedded.world import World

T = TypeVar("T")
SUPERUSER = User("kubernetes-super-admin", (SUPERUSERS, AUTHENTICATED))
NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


def bare_world(seed: int = 1, start: float | None = None) -> World:
    """A world with the four namespaces every cluster has and nothing else."""
    world = World(seed=seed, start=time.time() if start is None else start)
    client = world.component_client("kube-apiserver")
    for name in NAMESPACES:
        client.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return world


class RunningApi:
    """A served world, seen from the test's thread."""

    def __init__(self, server: ApiServer, pacer: Pacer, loop: asyncio.AbstractEventLoop, folder: Path) -> None:
        self.server = server
        self.world = server.world
        self.url = server.url
        self._pacer = pacer
        self._loop = loop
        self._folder = folder
        self.kubeconfig = self.kubeconfig_of(SUPERUSER)
        self.ca = folder / "ca.crt"
        self.ca.write_bytes(server.credentials.authority.pem)

    @property
    def watcher_count(self) -> int:
        """How many watches are open."""
        return sum(map(len, self.server.backend.feeds._watchers.values()))

    def kubeconfig_of(self, user: User, *, namespace: str = "", with_token: bool = False) -> Path:
        """Write a kubeconfig for this user; its path."""
        path = self._folder / f"{user.name.replace(':', '-').replace('/', '-')}.kubeconfig"
        config = self.call(lambda: self.server.kubeconfig(user, namespace=namespace, with_token=with_token))
        path.write_text(yaml.safe_dump(config))
        return path

    def call(self, function: Callable[[], T]) -> T:
        """Run a function in the thread the world lives in."""

        async def run() -> T:
            return function()

        return self.wait(run())

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=120)

    def advance(self, seconds: float) -> None:
        """Let virtual time pass at full speed."""
        self.wait(self._pacer.advance(seconds))

    def http(self, user: User = SUPERUSER, **options: Any) -> httpx.Client:
        """An HTTP client that trusts the server and carries the user's token."""
        token = self.call(lambda: self.server.credentials.token(user))
        context = ssl.create_default_context(cafile=str(self.ca))
        headers = {"authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, verify=context, headers=headers, timeout=30, **options)

    def kubectl(
        self, *arguments: str, stdin: str | None = None, user: User | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator or as another user; a failure shows what it said."""
        if shutil.which("kubectl") is None:
            pytest.skip("kubectl is not installed")
        config = self.kubeconfig if user is None else self.kubeconfig_of(user)
        cache = self._folder / "cache"
        done = subprocess.run(
            ["kubectl", f"--kubeconfig={config}", f"--cache-dir={cache}", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)} failed: {done.stdout}{done.stderr}")
        return done


@contextmanager
def running(world: World, *, speed: float = 1.0, agent: NodeAgent | None = None) -> Iterator[RunningApi]:
    """Serve the world until the block ends."""
    started: threading.Event = threading.Event()
    clusters: list[Any] = []

    async def serve() -> None:
        server = ApiServer(world, Credentials(world.randomness.secret("pki"), time.time()), agent=agent)
        pacer = Pacer(world.clock, speed)
        server.before_request = pacer.catch_up
        stop = asyncio.Event()
        async with server:
            flow = asyncio.create_task(pacer.run())
            clusters.extend((server, pacer, asyncio.get_running_loop(), stop))
            started.set()
            await stop.wait()
            flow.cancel()
            await asyncio.gather(flow, return_exceptions=True)

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            clusters.append(error)
            started.set()
            raise

    thread = threading.Thread(target=run, name="api-server", daemon=True)
    thread.start()
    started.wait()
    if len(clusters) != 4:
        raise RuntimeError("the server did not start") from clusters[-1]
    server, pacer, loop, stop = clusters
    with TemporaryDirectory() as folder:
        try:
            yield RunningApi(server, pacer, loop, Path(folder))
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join(timeout=30)
