"""The chat: `screen` lays it out, `asking` answers requests, `sending` queues and steers, `completing` proposes."""

from hermes_tui.screens.chat.screen import STYLES, ChatScreen

__all__ = ["STYLES", "ChatScreen"]
