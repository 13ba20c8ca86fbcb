"""Text on its way in and out: checkpoints with their tokenizers, and streaming detokenization."""
