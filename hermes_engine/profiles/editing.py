"""Makes, changes and removes the user's own profiles. Each is whole or not there: folders are built aside and renamed.

A copy takes description, settings and standing instructions; never keys (`.env`), sessions or anything else.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

from hermes_engine.errors import ConfigError, StateError, UsageError
from hermes_engine.paths import Home, private_dir, safe_name, write_atomic
from hermes_engine.profiles.catalog import ProfileInfo, chosen_profile, list_profiles, read_description
from hermes_engine.profiles.places import (
    FILES,
    ProfileFile,
    ProfilePlace,
    default_place,
    find_place,
    own_places,
    shipped_places,
)
from hermes_engine.settings.reading import read_text
from hermes_engine.settings.values import DEFAULT_PROFILE
from hermes_engine.settings_edit import ToolsetChange, change_toolsets, edit_config, set_value


def create(
    home: Home, name: str, *, description: str | None = None, model: str | None = None, clone: str | None = None
) -> ProfileInfo:
    """A new profile: empty, a copy of `clone`, or the user's own copy of the shipped one of that name.

    Args:
        home: where.
        name: of the new profile.
        description: what it is good at; None keeps that of the copied one.
        model: its model; None keeps that of the copied one, else the home's.
        clone: profile to copy (`default` copies the home's settings and instructions).

    Raises:
        UsageError: a bad, reserved or taken name, or an unknown one to clone.
    """
    check_new_name(home, name)
    if clone is not None:
        source: ProfilePlace | None = find_place(home, clone)
    else:
        source = next((place for place in shipped_places() if place.name == name), None)
    with new_folder(home, name) as folder:
        if source is not None:
            copy_files(source, folder)
        if description is not None or not (folder / "profile.yaml").exists():
            set_value(folder / "profile.yaml", "description", _one_line(description or ""), ProfileFile)
        if model is not None:
            set_value(folder / "config.yaml", "model", model)
    return _info(home, name)


def use(home: Home, name: str) -> ProfileInfo:
    """Makes a profile the one used when none is named. Raises UnknownName."""
    find_place(home, name)
    if name != chosen_profile(home):
        home.ensure()
        set_value(home.config, "profile", name)
    return _info(home, name)


def describe(home: Home, name: str, text: str) -> ProfileInfo:
    """Says what a profile is good at. Raises UsageError for one that is not the user's own."""
    place = own_place(home, name)
    set_value(place.folder / "profile.yaml", "description", _one_line(text), ProfileFile)
    return _info(home, name)


def rename(home: Home, old: str, new: str) -> ProfileInfo:
    """Gives an own profile another name; profiles that extend it and the choice of it follow. Raises UsageError."""
    place = own_place(home, old)
    check_new_name(home, new)
    heirs = _heirs(home, old)
    try:
        place.folder.rename(home.profiles / new)
    except OSError as error:
        raise StateError(f"{place.folder} cannot be renamed: {error.strerror or error}") from error
    for heir in heirs:
        edit_config(heir.folder / "profile.yaml", _set("extends", new), ProfileFile)
    if chosen_profile(home) == old:
        set_value(home.config, "profile", new)
    return _info(home, new)


def delete(home: Home, name: str) -> None:
    """Removes an own profile with its keys. Raises UsageError, also when another profile extends it."""
    place = own_place(home, name)
    shipped_too = any(item.name == name for item in shipped_places())
    heirs = [heir.name for heir in _heirs(home, name)]
    if heirs and not shipped_too:
        raise UsageError(f"profile {name} is extended by {', '.join(heirs)}", hint="change or delete those first")
    try:
        aside = Path(tempfile.mkdtemp(prefix=".deleted-", dir=home.profiles))
        place.folder.rename(aside / name)
        shutil.rmtree(aside)
    except OSError as error:
        raise StateError(f"{place.folder} cannot be deleted: {error.strerror or error}") from error
    if chosen_profile(home) == name and not shipped_too:
        set_value(home.config, "profile", DEFAULT_PROFILE)


def _heirs(home: Home, name: str) -> list[ProfilePlace]:
    """Own profiles that extend this one; what cannot be read is nobody's heir, and keeps no other from its change."""
    found = []
    for place in own_places(home):
        with contextlib.suppress(ConfigError):
            if place.name != name and place.read()[0].extends == name:
                found.append(place)
    return found


def config_for_edit(home: Home, name: str) -> Path:
    """The `config.yaml` a command may change for this profile: a shipped one is copied first. Raises UnknownName."""
    place = find_place(home, name)
    if not place.own:
        create(home, name)
        place = find_place(home, name)
    return place.config


def edit_toolsets(
    home: Home, name: str, inherited: tuple[str, ...], *, enable: tuple[str, ...] = (), disable: tuple[str, ...] = ()
) -> ToolsetChange:
    """Enables or disables toolsets of a profile; `inherited` is what is in effect for it. See `change_toolsets`."""
    place = find_place(home, name)
    if not place.own:
        trial = _without_writing(inherited, enable, disable)
        if not trial.changed:
            return trial
    return change_toolsets(config_for_edit(home, name), inherited, enable=enable, disable=disable)


def _without_writing(inherited: tuple[str, ...], enable: tuple[str, ...], disable: tuple[str, ...]) -> ToolsetChange:
    with tempfile.TemporaryDirectory() as folder:
        return change_toolsets(Path(folder) / "config.yaml", inherited, enable=enable, disable=disable)


# -- shared with importing ----------------------------------------------------------------------------------------


def check_new_name(home: Home, name: str) -> None:
    """Raises UsageError unless a new profile may have this name."""
    safe_name("profile", name)
    if name == DEFAULT_PROFILE:
        raise UsageError(f"profile {DEFAULT_PROFILE} is the home itself and is always there")
    taken = next((place.name for place in own_places(home) if place.name.casefold() == name.casefold()), None)
    if taken or (home.profiles / name).exists():
        raise UsageError(f"there is a profile {taken or name} already", hint="choose another name, or delete it first")


def own_place(home: Home, name: str) -> ProfilePlace:
    """The user's own profile of this name. Raises UsageError for `default`, a shipped or an unknown one."""
    place = find_place(home, name)
    if name == DEFAULT_PROFILE:
        raise UsageError(f"profile {DEFAULT_PROFILE} is the home itself", hint=f"its files are in {home.root}")
    if not place.own:
        raise UsageError(f"profile {name} is a shipped template", hint=f"hermes profile create {name} makes it yours")
    return place


@contextlib.contextmanager
def new_folder(home: Home, name: str) -> Iterator[Path]:
    """A folder to fill, that becomes the profile `name` at the end of the block, or vanishes when the block raises."""
    private_dir(home.profiles)
    folder = Path(tempfile.mkdtemp(prefix=".new-", dir=home.profiles))
    try:
        yield folder
        for lock in folder.glob(".*.lock"):
            lock.unlink()
        try:
            folder.rename(home.profiles / name)
        except OSError as error:
            raise UsageError(f"there is a profile {name} already") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def copy_files(source: ProfilePlace, folder: Path) -> None:
    """Copies what a profile consists of, keys excepted."""
    if source.name == DEFAULT_PROFILE:
        description = read_description(default_place(Home(source.folder))).description
        set_value(folder / "profile.yaml", "description", description, ProfileFile)
    for name in FILES:
        text = None if source.name == DEFAULT_PROFILE and name == "profile.yaml" else read_text(source.folder / name)
        if text is not None:
            write_atomic(folder / name, text)
    if source.name == DEFAULT_PROFILE:
        edit_config(folder / "config.yaml", _drop("profile"))


def _info(home: Home, name: str) -> ProfileInfo:
    return next(info for info in list_profiles(home) if info.name == name)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _set(key: str, value: Any) -> Any:
    def change(values: MutableMapping[str, Any]) -> None:
        values[key] = value

    return change


def _drop(key: str) -> Any:
    def change(values: MutableMapping[str, Any]) -> None:
        values.pop(key, None)

    return change
