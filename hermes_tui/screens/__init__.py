"""What fills the terminal: the chat, and the overlays that lie on it. A screen owns layout and what keys mean."""
