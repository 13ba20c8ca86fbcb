"""Figures and widgets, all drawn from one engine trace."""
