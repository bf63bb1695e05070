"""PageRank by power iteration."""

import numpy as np


def program(links, damping, iterations=8):
    """The ranks of the pages; links[i, j] is the weight of the link from page j to page i."""
    flow = links.copy()
    for column in flow.T:
        column /= column.sum()
    n = len(links)
    rank = np.full_like(links[0], 1.0 / n)
    for _ in range(iterations):
        rank[:] = damping * flow @ rank + (1.0 - damping) / n
        rank /= rank.sum()
    return rank


def example():
    links = np.array(
        [[0.0, 1.0, 0.5, 0.2], [1.0, 0.0, 0.3, 0.0], [0.4, 0.6, 0.0, 1.0], [0.1, 0.0, 2.0, 0.0]]
    )
    return links, np.float64(0.85)
