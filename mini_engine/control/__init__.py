"""The control plane: requests, blocks, prefix cache and scheduler. Imports no torch and no numpy."""
