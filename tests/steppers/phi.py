"""The phi functions of the package, which only compiled code calls, for tests."""

from numba import njit

from meanfield.steppers.attempt import phi_functions


@njit
def write_phi(z, values):
    """Write phi_0(z), ..., phi_3(z) into `values`."""
    phi_functions(z, values)
