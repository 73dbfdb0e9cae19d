"""The disk side of the engine: opening and keeping chats, recording events, remembering rules. All of it blocks.

Called on the store's thread or before the loop runs; knows no loop.
"""

from __future__ import annotations
