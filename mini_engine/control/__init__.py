"""The control plane: requests, blocks, prefix cache, scheduler. Imports no torch and no numpy."""
