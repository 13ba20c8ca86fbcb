"""The server: HTTP in front, the engine behind. Text is made in front; only tokens cross over."""
