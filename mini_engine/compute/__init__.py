"""The data plane: everything that touches tensors, and the only room that runs on a GPU."""
