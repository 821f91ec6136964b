"""Evaluation of drifts on tokens."""
