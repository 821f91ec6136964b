"""Compiled building blocks and bindings for other rooms; not part of the public interface."""
