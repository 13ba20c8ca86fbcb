"""References of the exercises that are plain functions and no part of the engine."""
