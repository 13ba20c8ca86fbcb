"""Benchmarks: one command each, which prints ratios and keeps JSON."""
