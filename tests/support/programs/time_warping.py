"""The distance of two curves under the best alignment, by dynamic programming."""

import numpy as np

FAR = 1e6


def program(left, right):
    """The cost of the cheapest path through the table of differences."""
    costs = np.full((len(left) + 1, len(right) + 1), FAR, like=left)
    costs[0, 0] = 0.0
    for i, a in enumerate(left, start=1):
        for j, b in enumerate(right, start=1):
            cheapest = min(costs[i - 1, j], costs[i, j - 1], costs[i - 1, j - 1])
            costs[i, j] = (a - b) ** 2 + cheapest
    return costs[-1, -1]


def example():
    return np.array([0.0, 0.9, 2.1, 1.2, 0.3]), np.array([0.1, 0.2, 1.1, 1.9, 2.3, 0.8])
