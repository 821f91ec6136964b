"""Compiled building blocks and bindings that the numerics call; nobody else need enter."""
