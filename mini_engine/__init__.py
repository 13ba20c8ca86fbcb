"""mini-engine: a small LLM inference engine to read, run and rebuild part by part.

Importing this package prints nothing, touches no network and no GPU, and loads no torch.
"""

__version__ = "0.1.0"
