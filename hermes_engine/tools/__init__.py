"""What an agent can do: tools as typed functions, permissions, results. Knows protocols, not sandboxes or screens."""
