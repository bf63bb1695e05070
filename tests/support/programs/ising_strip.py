"""The free energy of an Ising model on a strip, by its transfer matrix."""

import itertools

import numpy as np

WIDTH, LENGTH = 3, 6


def program(couplings, field):
    """The logarithm of the partition function per site; `couplings` are along and across the strip."""
    along, across = couplings
    columns = list(itertools.product([-1, 1], repeat=WIDTH))
    transfer = np.zeros((len(columns), len(columns)), like=couplings)
    for i, left in enumerate(columns):
        for j, right in enumerate(columns):
            transfer[i, j] = along * sum(s * t for s, t in zip(left, right, strict=True))
        transfer[i] += across * sum(s * t for s, t in itertools.pairwise(left))
        transfer[i] += field @ np.array(left)
    np.exp(transfer, out=transfer)
    product = transfer.copy()
    log_scale = 0.0
    for _ in range(LENGTH - 1):
        product = product @ transfer
        largest = np.max(product)
        product /= largest
        log_scale += np.log(largest)
    return (np.log(np.trace(product)) + log_scale) / (WIDTH * LENGTH)


def example():
    return np.array([0.4, 0.3]), np.array([0.1, -0.05, 0.2])


def reference(couplings, field):
    along, across = couplings
    total = 0.0
    for spins in itertools.product([-1, 1], repeat=WIDTH * LENGTH):
        s = np.array(spins).reshape(LENGTH, WIDTH)
        energy = along * np.sum(s * np.roll(s, 1, axis=0)) + across * np.sum(s[:, 1:] * s[:, :-1])
        total += np.exp(energy + np.sum(s @ field))
    return np.log(total) / (WIDTH * LENGTH)
