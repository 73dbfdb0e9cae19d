"""Profiles: who an agent is (settings, standing instructions, keys), and resolving what is in effect.

The verbs that change profiles are loaded when first used: a start needs only `resolve`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_engine.profiles.resolving import ENABLE_HINT, NOT_ENABLED, Resolved, resolve

if TYPE_CHECKING:
    from hermes_engine.profiles.archives import export, import_profile
    from hermes_engine.profiles.catalog import ProfileDetail, ProfileInfo, list_profiles, show
    from hermes_engine.profiles.editing import config_for_edit, create, delete, describe, edit_toolsets, rename, use

__all__ = [
    "ENABLE_HINT",
    "NOT_ENABLED",
    "ProfileDetail",
    "ProfileInfo",
    "Resolved",
    "config_for_edit",
    "create",
    "delete",
    "describe",
    "edit_toolsets",
    "export",
    "import_profile",
    "list_profiles",
    "rename",
    "resolve",
    "show",
    "use",
]

_LATE = {
    "archives": ("export", "import_profile"),
    "catalog": ("ProfileDetail", "ProfileInfo", "list_profiles", "show"),
    "editing": ("config_for_edit", "create", "delete", "describe", "edit_toolsets", "rename", "use"),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATE.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__} has no attribute {name}")
