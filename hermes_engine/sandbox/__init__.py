"""Where commands run: fork, watch, end. Knows no tool, no permission and no settings."""
