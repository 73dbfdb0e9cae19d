"""The one place where text leaves by outside Textual: cleaned, one way for a terminal and one for a pipe.

Nothing is imported here: `hermes --version` prints through `printing.streams` and must stay cheap.
"""
