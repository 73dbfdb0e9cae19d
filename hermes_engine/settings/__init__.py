"""Settings: values, reading them with their lines, and the choice of endpoint and key. Knows no profile.

Front door of the package; `settings.values` holds the keys, `settings.endpoints` the table of keys and addresses.
"""

from hermes_engine.settings.addresses import OPENAI_URL, OPENROUTER_URL
from hermes_engine.settings.endpoints import Endpoint, EndpointSources, Overrides, Place, endpoint_for
from hermes_engine.settings.values import (
    DEFAULT_MODEL,
    DEFAULT_PROFILE,
    DEFAULT_TOOLSETS,
    ApprovalSettings,
    BatchSettings,
    DelegationSettings,
    KanbanSettings,
    LimitSettings,
    Mode,
    Price,
    ProviderSettings,
    ReasoningEffort,
    Section,
    SendEffort,
    Settings,
    StorageSettings,
    TerminalSettings,
    UiSettings,
    WebSettings,
)

__all__ = [
    "DEFAULT_MODEL",
    "DEFAULT_PROFILE",
    "DEFAULT_TOOLSETS",
    "OPENAI_URL",
    "OPENROUTER_URL",
    "ApprovalSettings",
    "BatchSettings",
    "DelegationSettings",
    "Endpoint",
    "EndpointSources",
    "KanbanSettings",
    "LimitSettings",
    "Mode",
    "Overrides",
    "Place",
    "Price",
    "ProviderSettings",
    "ReasoningEffort",
    "Section",
    "SendEffort",
    "Settings",
    "StorageSettings",
    "TerminalSettings",
    "UiSettings",
    "WebSettings",
    "endpoint_for",
]
