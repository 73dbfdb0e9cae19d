"""The consumers, by version, and an environment of its own for each: kept outside the checkout, made once.

pip gets its settings from where it always does; where torch comes from is up to them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

TORCH = "torch==2.13.0"


@dataclass(frozen=True, slots=True)
class Consumer:
    """A program that reads exports.

    Attributes:
        name, version: of its package.
        reader: module in `readers`.
        alone: whether it is installed without what it asks for; then `packages` are all that is needed.
        packages: what is installed besides.
    """

    name: str
    version: str
    reader: str
    packages: tuple[str, ...] = ()
    alone: bool = False

    @property
    def key(self) -> str:
        """Name and version, as files and folders have it."""
        return f"{self.name}-{self.version}"


CONSUMERS = (
    *(Consumer("datasets", version, "datasets_load") for version in ("2.21.0", "4.0.0", "4.8.5", "5.2.0")),
    Consumer("atroposlib", "0.4.0", "atropos_api", ("transformers==5.24.0", "datasets==5.2.0")),
    Consumer("trl", "1.16.0", "trl_sft", (TORCH, "transformers==5.24.0", "datasets==5.2.0", "jinja2")),
    Consumer(
        "axolotl",
        "0.19.0",
        "axolotl_chat",
        # without its kernels for graphics cards and its clients of clouds, none of which reads a data set from a disk
        (
            TORCH,
            "transformers==5.16.1",
            "datasets==4.8.4",
            "accelerate==1.13.0",
            "peft==0.20.0",
            "pydantic==2.12.5",
            "jinja2",
            "addict",
            "fire",
            "colorama",
            "PyYAML",
            "requests",
            "python-dotenv",
        ),
        alone=True,
    ),
    Consumer(
        "llamafactory",
        "0.9.5",
        "llamafactory_sft",
        # without its web page and what reads sounds and films
        (
            TORCH,
            "transformers==4.57.6",
            "datasets==4.0.0",
            "accelerate==1.11.0",
            "peft==0.18.1",
            "trl==0.24.0",
            "omegaconf",
            "jinja2",
            "fire",
            "tyro<0.9",
            "pandas",
            "scipy",
            "einops",
            "sentencepiece",
            "tiktoken",
            "protobuf",
            "matplotlib",
        ),
        alone=True,
    ),
)


def set_up(consumer: Consumer, cache: Path) -> tuple[Path, str]:
    """Its environment: the interpreter in it, and what went wrong ("" when all is there)."""
    folder = cache / consumer.key
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    stamp = folder / "installed.json"
    wanted = json.dumps([sys.version_info[:2], asdict(consumer)])
    if stamp.exists() and stamp.read_text() == wanted:
        return python, ""
    shutil.rmtree(folder, ignore_errors=True)
    cache.mkdir(parents=True, exist_ok=True)
    itself = f"{consumer.name}=={consumer.version}"
    install = [str(python), "-m", "pip", "install", "-q", "--no-compile", "--disable-pip-version-check"]
    steps = [[sys.executable, "-m", "venv", str(folder)]]
    if consumer.alone:
        steps += [[*install, *consumer.packages], [*install, "--no-deps", itself]]
    else:
        steps += [[*install, itself, *consumer.packages]]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            (cache / f"{consumer.key}.log").write_text(done.stdout + done.stderr)
            shutil.rmtree(folder, ignore_errors=True)
            said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["it could not be set up"]
            return python, said[-1].removeprefix("ERROR: ")
    stamp.write_text(wanted)
    return python, ""
