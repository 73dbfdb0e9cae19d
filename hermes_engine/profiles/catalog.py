"""What there is of profiles, for people and for agents that choose one: lists and single ones in full."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes_engine.dotenv import read_dotenv
from hermes_engine.errors import ConfigError
from hermes_engine.paths import Home, shipped
from hermes_engine.profiles.places import ProfileFile, ProfilePlace, all_places, find_place, lineage, soul_of
from hermes_engine.settings.reading import parse_settings, read_yaml
from hermes_engine.settings.values import DEFAULT_PROFILE, Settings


@dataclass(frozen=True, slots=True)
class ProfileInfo:
    """A line of the list.

    Attributes:
        name: as typed after `-p`.
        description: what it is good at; why it cannot be used, when its files are wrong.
        own: the user's (True) or a shipped template.
        chosen: used when none is named.
        model: its own model, or "" when it takes the home's.
        folder: where its files are.
    """

    name: str
    description: str
    own: bool
    chosen: bool
    model: str
    folder: Path


@dataclass(frozen=True, slots=True)
class ProfileDetail:
    """One profile in full.

    Attributes:
        info: as in the list.
        extends: profile it builds on, or "".
        settings: what its own `config.yaml` says, as plain values.
        soul: its standing instructions in effect.
        keys: names of the variables in its `.env`; never their values.
    """

    info: ProfileInfo
    extends: str
    settings: dict[str, Any]
    soul: str
    keys: tuple[str, ...]


def list_profiles(home: Home) -> list[ProfileInfo]:
    """Every profile that can be used, `default` first. One with broken files is listed with what is wrong."""
    chosen = chosen_profile(home)
    return [_info(place, chosen) for place in all_places(home)]


def show(home: Home, name: str) -> ProfileDetail:
    """One profile. Raises UnknownName, or ConfigError when its files are wrong."""
    place = find_place(home, name)
    chain = lineage(home, name)
    file = read_description(place)
    return ProfileDetail(
        _info(place, chosen_profile(home)),
        file.extends or "",
        read_yaml(place.config).values,
        soul_of(home, [item for item, _, _ in chain]),
        tuple(read_dotenv(place.dotenv)) if place.dotenv else (),
    )


def chosen_profile(home: Home) -> str:
    """The profile the home's config names, `default` when it names none or cannot be read."""
    try:
        return parse_settings(read_yaml(home.config), Settings).profile
    except ConfigError:
        return DEFAULT_PROFILE


def read_description(place: ProfilePlace) -> ProfileFile:
    """The profile's `profile.yaml`; for `default`, which has none of its own, the shipped one. Raises ConfigError."""
    if place.name == DEFAULT_PROFILE:
        place = ProfilePlace(DEFAULT_PROFILE, shipped("profiles") / DEFAULT_PROFILE, own=False)
    return place.read()[0]


def _info(place: ProfilePlace, chosen: str) -> ProfileInfo:
    model = ""
    try:
        description = read_description(place).description
        model = str(read_yaml(place.config).values.get("model") or "")
    except ConfigError as error:
        description = f"cannot be used: {error}"
    return ProfileInfo(place.name, description, place.own, place.name == chosen, model, place.folder)
