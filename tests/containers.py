"""Real sandboxes for tests, or a skip that says why: bubblewrap; podman with a store and a small image of its own."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from hermes_engine.sandbox.bubblewrap import why_not

IMAGE = "localhost/hermes-test:1"

_CONF = """
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
{runtime}
cgroup_manager = "cgroupfs"
events_logger = "file"
"""


def podman(*words: str, env: Mapping[str, str] | None = None) -> str:
    """Runs podman; what it printed. Raises CalledProcessError."""
    done = subprocess.run(
        ["podman", *words], env=env, capture_output=True, text=True, timeout=60, check=True, stdin=subprocess.DEVNULL
    )
    return done.stdout


def there() -> list[str]:
    """Names of all containers of the store, running or not."""
    return podman("ps", "-a", "--format", "{{.Names}}").split()


@pytest.fixture(scope="session")
def container_store() -> Iterator[Mapping[str, str]]:
    """Variables that name the store; the image is in it."""
    busybox = shutil.which("busybox", path="/bin:/usr/bin")
    if shutil.which("podman") is None or busybox is None:
        pytest.skip("no containers to test with: podman and busybox-static are needed")
    folder = Path(tempfile.mkdtemp(prefix="hermes-pods-"))
    runtime = 'runtime = "runc"' if shutil.which("runc", path="/usr/sbin:/usr/bin:/sbin:/bin") else ""
    (folder / "containers.conf").write_text(_CONF.format(runtime=runtime))
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/store"\nrunroot = "{folder}/run"\n'
    )
    names = {
        "CONTAINERS_CONF": str(folder / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
    }
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(folder), **names}
    try:
        _import(Path(busybox), folder, env)
        podman("run", "--rm", "--network", "none", "--memory", "64m", "--pids-limit", "64", IMAGE, "true", env=env)
    except (OSError, subprocess.SubprocessError) as error:
        said = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"no containers to test with: {' '.join(str(said).split())[:300]}")
    yield names
    podman("rm", "-a", "-f", env=env)
    shutil.rmtree(folder, ignore_errors=True)


def _import(busybox: Path, folder: Path, env: Mapping[str, str]) -> None:
    root = folder / "root"
    for name in ("bin", "etc", "tmp", "root"):
        (root / name).mkdir(parents=True)
    shutil.copy(busybox, root / "bin" / "busybox")
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    for name in applets:
        if name != "busybox":
            (root / "bin" / name).symlink_to("busybox")
    subprocess.run(["tar", "-C", str(root), "-cf", str(folder / "root.tar"), "."], check=True)
    podman("import", "-q", str(folder / "root.tar"), IMAGE, env=env)


@pytest.fixture
def bubblewrap_here() -> None:
    """Skips where there is no bubblewrap that works."""
    if reason := why_not():
        pytest.skip(f"no bubblewrap to test with: {reason}")


@pytest.fixture
def image(container_store: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of an image that is here; podman is set up for it."""
    for name, value in container_store.items():
        monkeypatch.setenv(name, value)
    return IMAGE
