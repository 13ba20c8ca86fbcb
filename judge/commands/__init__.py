"""The commands of `python practice/judge.py`: one module for each, called by `judge.cli`."""
