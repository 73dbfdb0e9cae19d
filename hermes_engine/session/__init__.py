"""Chats, and the one engine of a process that front ends talk to."""

from hermes_engine.session.engine import Engine
from hermes_engine.session.view import SessionView
from hermes_engine.work.supervisor import AgentRow

__all__ = ["AgentRow", "Engine", "SessionView"]
