"""Derivatives of runs: tangents, gradients by the adjoint, Lyapunov exponents."""
