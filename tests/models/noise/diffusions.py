"""Exact expectations, to hold one step of a noise against: no Monte Carlo anywhere.

`semigroup` sums the Taylor series of e^(s L) f at a point, for polynomials f and generators
L = V_0 + sum_k V_k^2 of polynomial vector fields. `expectation` averages f over one step, by
Gauss-Hermite quadrature over its random numbers. A polynomial in d variables is a dictionary
from exponents (e_1, ..., e_d) to coefficients; a field is a list of d polynomials.
"""

import itertools
from operator import add

import numpy as np


def plus(*polynomials):
    total = {}
    for polynomial in polynomials:
        for powers, c in polynomial.items():
            total[powers] = total.get(powers, 0.0) + c
    return total


def times(p, q):
    product = {}
    for first, c in p.items():
        for second, e in q.items():
            powers = tuple(map(add, first, second))
            product[powers] = product.get(powers, 0.0) + c * e
    return product


def variable(k, d):
    return {tuple(int(j == k) for j in range(d)): 1.0}


def constant(c, d):
    return {(0,) * d: float(c)}


def derivative(p, k):
    return {
        (*powers[:k], powers[k] - 1, *powers[k + 1 :]): c * powers[k]
        for powers, c in p.items()
        if powers[k]
    }


def along(field, p):
    """The derivative of a polynomial along a field."""
    return plus(*(times(component, derivative(p, k)) for k, component in enumerate(field)))


def tangential(vector, scale=None):
    """The field scale(x) P_x a for polynomials a_1, ..., a_d and scale."""
    d = len(vector)
    x = [variable(k, d) for k in range(d)]
    radial = plus(*(times(component, y) for component, y in zip(vector, x, strict=True)))
    minus = times(constant(-1, d), radial)
    field = [plus(component, times(minus, y)) for component, y in zip(vector, x, strict=True)]
    return field if scale is None else [times(scale, component) for component in field]


def constants(vector):
    return [constant(c, len(vector)) for c in vector]


def value(p, x):
    """p at points (..., d)."""
    return sum(c * np.prod(x ** np.array(powers), axis=-1) for powers, c in p.items())


def semigroup(p, x, s, fields, drift=None, terms=6):
    """e^(s L) p at x, L = drift + sum of squares of fields, for each s; error O(s^(terms + 1))."""
    total, factor = value(p, x), 1.0
    for k in range(1, terms + 1):
        squares = [along(field, along(field, p)) for field in fields]
        p = plus(*squares, along(drift, p) if drift else {})
        factor = factor * np.asarray(s) / k
        total = total + factor * value(p, x)
    return total


def normal_rule(count, nodes):
    """Gauss quadrature of `count` standard normals: points (nodes^count, count), weights."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights = weights / weights.sum()
    grid = np.array(list(itertools.product(points, repeat=count)))
    return grid, np.prod(list(itertools.product(weights, repeat=count)), axis=1)


def expectation(noise, f, x, s, nodes=8):
    """E f(x') after one step from tokens x (n, d); f takes (..., n, d).

    The last increment of a token is a coin where there are d + 1 of them.
    """
    shape = noise.increments_shape(1, *x.shape)[1:]
    coin = len(shape) == 2 and shape[-1] == x.shape[1] + 1
    assert not coin or len(x) == 1, "one token at a time: the others are independent of it"
    numbers, weights = normal_rule(int(np.prod(shape)) - coin, nodes)
    if coin:
        numbers = np.concatenate([np.insert(numbers, x.shape[1], c, axis=1) for c in (-1.0, 1.0)])
        weights = np.concatenate([weights, weights]) / 2
    increments = numbers.reshape(-1, *shape)
    tokens = np.broadcast_to(x, (len(weights), *x.shape))
    return weights @ f(noise.moved(tokens, np.full(len(weights), s), increments))


def local_errors(noise, p, places, steps, fields, drift=None, nodes=8):
    """Error of E p after one step, for each s in `steps`: root mean square over starts.

    `places` (m, n, d): m starts of n tokens; p is a polynomial in n d variables.
    """

    def f(y):
        return value(p, y.reshape(*y.shape[:-2], -1))

    expected = semigroup(p, places.reshape(len(places), -1), steps[:, None], fields, drift)
    measured = [[expectation(noise, f, x, s, nodes) for x in places] for s in steps]
    return np.sqrt(np.mean((np.array(measured) - expected) ** 2, axis=1))


def orders(errors, steps):
    """Exponents of the error between consecutive steps."""
    return np.diff(np.log(errors)) / np.diff(np.log(steps))


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)
