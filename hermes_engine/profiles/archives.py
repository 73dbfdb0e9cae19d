"""Profiles as files to hand on: one `.tar.gz` with description, settings and instructions; never a key.

An archive is foreign: names, paths, kinds and sizes are checked, and its settings parsed, before anything is kept.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import MutableMapping
from pathlib import Path, PurePosixPath
from typing import Any

from hermes_engine.errors import ConfigError, HermesError, StateError, UsageError
from hermes_engine.paths import Home, safe_name, write_atomic
from hermes_engine.profiles.catalog import ProfileInfo, list_profiles
from hermes_engine.profiles.editing import check_new_name, new_folder
from hermes_engine.profiles.places import FILES, ProfileFile, find_place
from hermes_engine.redaction import is_secret_name
from hermes_engine.settings.addresses import password_of
from hermes_engine.settings.reading import check_settings, read_text, read_yaml
from hermes_engine.settings_edit import edited_text

_LARGEST = 1_000_000
_MOST_MEMBERS = 16


def export(home: Home, name: str, target: Path | None = None) -> Path:
    """Writes `NAME.tar.gz` (in the current folder, or at `target`); returns its path.

    Left out: `.env`, and what in `config.yaml` looks like a key.

    Raises:
        UsageError: an unknown profile or one without files, or the file exists.
    """
    place = find_place(home, name)
    path = target or Path(f"{name}.tar.gz")
    if path.is_dir():
        path = path / f"{name}.tar.gz"
    if path.exists():
        raise UsageError(f"{path} exists already")
    if not any((place.folder / file_name).exists() for file_name in FILES):
        raise UsageError(f"profile {name} has no files of its own to hand on")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for file_name in FILES:
            text = read_text(place.folder / file_name)
            if text is None:
                continue
            if file_name == "config.yaml":
                text = edited_text(place.config, text, _drop_secrets)
            data = text.encode()
            member = tarfile.TarInfo(f"{name}/{file_name}")
            member.size, member.mode = len(data), 0o600
            archive.addfile(member, io.BytesIO(data))
    try:
        write_atomic(path, out.getvalue())
    except OSError as error:
        raise StateError(f"{path} cannot be written: {error.strerror or error}") from error
    return path


def _drop_secrets(values: MutableMapping[str, Any]) -> None:
    for key in [key for key in values if is_secret_name(str(key))]:
        del values[key]
    if password_of(str(values.get("base_url") or "")):
        del values["base_url"]
    for value in values.values():
        if isinstance(value, MutableMapping):
            _drop_secrets(value)


def import_profile(home: Home, archive: Path, *, name: str | None = None) -> ProfileInfo:
    """Makes a profile from an exported file, under its own or another name.

    Raises:
        UsageError: not such a file, something in it that no profile has, or a taken name.
        ConfigError: its settings are wrong.
    """
    files, packed_name = _checked_members(archive)
    new_name = name or packed_name
    check_new_name(home, new_name)
    with new_folder(home, new_name) as folder:
        for file_name, data in files.items():
            write_atomic(folder / file_name, data)
        try:
            for file_name in FILES:
                read_text(folder / file_name)
            check_settings(read_yaml(folder / "config.yaml"))
            check_settings(read_yaml(folder / "profile.yaml"), ProfileFile)
        except ConfigError as error:
            raise ConfigError(str(error).replace(f"{folder}/", f"{archive}: "), hint=error.hint) from None
        if "profile.yaml" not in files:
            write_atomic(folder / "profile.yaml", "description: ''\n")
    return next(info for info in list_profiles(home) if info.name == new_name)


def _checked_members(path: Path) -> tuple[dict[str, bytes], str]:
    """The archive's files by name, and the folder they stand in."""
    try:
        with tarfile.open(path, mode="r:gz") as archive:
            members = []
            for member in archive:
                members.append(member)
                if len(members) > _MOST_MEMBERS:
                    raise UsageError(f"{path} holds more than a profile")
            files = {member.name: _content(path, archive, member) for member in members if not member.isdir()}
    except HermesError:
        raise
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except (tarfile.TarError, OSError, EOFError) as error:
        raise UsageError(f"{path} is not an exported profile: {error}") from None
    parts = [PurePosixPath(name).parts for name in files]
    if not files or any(len(part) != 2 or part[1] not in FILES for part in parts) or len({p[0] for p in parts}) != 1:
        raise UsageError(f"{path} is not an exported profile", hint=f"it holds NAME/ with {', '.join(FILES)} only")
    return {PurePosixPath(name).name: data for name, data in files.items()}, safe_name("profile", parts[0][0])


def _content(path: Path, archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    if not member.isreg() or member.size > _LARGEST:
        raise UsageError(f"{path} holds {member.name!r}, which is no file of a profile")
    stream = archive.extractfile(member)
    return stream.read(_LARGEST) if stream else b""
