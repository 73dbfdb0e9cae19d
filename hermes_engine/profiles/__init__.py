"""Profiles: who an agent is (settings, standing instructions, keys), and resolving what is in effect."""

from hermes_engine.profiles.resolving import Resolved, resolve

__all__ = ["Resolved", "resolve"]
