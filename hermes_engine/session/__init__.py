"""Chats, and the one engine of a process that front ends talk to."""

from hermes_engine.session.engine import Engine
from hermes_engine.work.supervisor import AgentRow
from hermes_engine.work.view import SessionView

__all__ = ["AgentRow", "Engine", "SessionView"]
