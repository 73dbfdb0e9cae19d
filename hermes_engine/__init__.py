"""The engine of Hermes: agents, tools, clients, batch runs. It knows no screen.

Nothing is imported here: `hermes --version` reads the version and must stay cheap.
"""

__version__ = "0.1.0"
