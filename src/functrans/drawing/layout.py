"""Layout: boxes in layers, so that every edge leads down.

The four steps of Sugiyama, Tagawa and Toda (1981): a layer for every box, an order within each layer with few
edge crossings, horizontal positions, and heights. An edge that passes through a layer, or has a label, takes
a place there, a bead, like a box. So no edge runs through a box, and no label lies on one.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from functrans.drawing.diagram import DrawnValue

Point = tuple[float, float]

LABEL = 2  # a label is between the third and the fourth corner of its edge
_MARGIN = 12.0
_BESIDE = 18.0  # between boxes
_BESIDE_BEADS = 9.0
_BETWEEN = 15.0  # between layers


class Placed(NamedTuple):
    """A rectangle, by its center."""

    x: float
    y: float
    width: float
    height: float


class Layout(NamedTuple):
    """The places of all parts; `edges` has the corners of one line for each head of each value."""

    width: float
    height: float
    boxes: list[Placed]
    labels: list[Placed | None]  # one for each value
    edges: list[list[tuple[int, list[Point]]]]  # for each value, its heads and the ways to them


def arrange(
    sizes: Sequence[Point], values: Sequence[DrawnValue], label_sizes: Sequence[Point]
) -> Layout:
    """Find places for boxes of these sizes, and for the edges and labels of the values."""
    web = _Web(sizes, values, label_sizes)
    _order(web)
    x = _columns(web)
    tops, heights = _rows(web)
    total = tops[-1] + heights[-1] if tops else 0.0

    def placed(node: int) -> Placed:
        layer = web.layer[node]
        return Placed(x[node], tops[layer] + heights[layer] / 2, web.width[node], web.height[node])

    edges = []
    for value, beads in zip(values, web.beads, strict=True):
        ways = []
        for head in value.heads:
            stops = [b for b in beads if web.layer[b] < web.layer[head]]
            start, end = placed(value.tail), placed(head)
            way = [(start.x, start.y + start.height / 2)]
            way.append((start.x, tops[web.layer[value.tail]] + heights[web.layer[value.tail]]))
            for bead in stops:
                top = tops[web.layer[bead]]
                way += [(x[bead], top), (x[bead], top + heights[web.layer[bead]])]
            way += [(end.x, tops[web.layer[head]]), (end.x, end.y - end.height / 2)]
            ways.append((head, way))
        edges.append(ways)
    labels = [
        placed(beads[0]) if size[0] else None
        for beads, size in zip(web.beads, label_sizes, strict=True)
    ]
    right = max((x[n] + web.width[n] / 2 for n in range(len(x))), default=0.0)
    boxes = [placed(node) for node in range(len(sizes))]
    return Layout(right + _MARGIN, total + _MARGIN, boxes, labels, edges)


class _Web:
    """Boxes and beads as nodes in layers, each joined to nodes of the next layer only."""

    def __init__(
        self, sizes: Sequence[Point], values: Sequence[DrawnValue], label_sizes: Sequence[Point]
    ) -> None:
        # Labels, if any, take every other layer.
        stride = 2 if any(width for width, _ in label_sizes) else 1
        self.layer = [stride * rank for rank in _ranks(len(sizes), values)]
        self.width = [width for width, _ in sizes]
        self.height = [height for _, height in sizes]
        self.boxes = len(sizes)
        self.beads: list[list[int]] = []
        links = []
        for value, (width, height) in zip(values, label_sizes, strict=True):
            first = self.layer[value.tail] + 1
            # One chain of beads serves all heads.
            last = max(self.layer[head] for head in value.heads)
            beads = list(range(len(self.layer), len(self.layer) + last - first))
            self.layer += range(first, last)
            self.width += [width if k == 0 else 0.0 for k in range(len(beads))]
            self.height += [height if k == 0 else 0.0 for k in range(len(beads))]
            self.beads.append(beads)
            string = [value.tail, *beads]
            links += list(zip(string, beads, strict=False))
            links += [(string[self.layer[head] - first], head) for head in value.heads]
        self.above: list[list[int]] = [[] for _ in self.layer]
        self.below: list[list[int]] = [[] for _ in self.layer]
        for upper, lower in links:
            self.below[upper].append(lower)
            self.above[lower].append(upper)
        # Boxes without inputs that serve one other box are placed near it.
        self.followers: set[int] = set()
        for value, beads in zip(values, self.beads, strict=True):
            if not self.above[value.tail] and len(value.heads) == 1:
                self.followers |= {value.tail, *beads}
        self.layers: list[list[int]] = [[] for _ in range(max(self.layer, default=-1) + 1)]
        for node in self._by_walking():
            self.layers[self.layer[node]].append(node)

    def _by_walking(self) -> list[int]:
        """All nodes, with neighbors close to each other: a good initial order."""
        seen = [False] * len(self.layer)
        found = []
        for start in range(len(self.layer)):
            stack = [start]
            while stack:
                node = stack.pop()
                if not seen[node]:
                    seen[node] = True
                    found.append(node)
                    stack += [*self.below[node][::-1], *self.above[node][::-1]]
        return found

    def pull(self, node: int, other: int) -> float:
        """How strongly a neighbor pulls a node: long edges should be straight, and inputs follow."""
        if node >= self.boxes and other >= self.boxes:
            return 8.0
        return 0.1 if other in self.followers else 1.0

    def space(self, left: int, right: int) -> float:
        """The distance between the centers of neighbors in a layer."""
        beads = left >= self.boxes and right >= self.boxes
        gap = _BESIDE_BEADS if beads else _BESIDE
        return (self.width[left] + self.width[right]) / 2 + gap


def _ranks(count: int, values: Sequence[DrawnValue]) -> list[int]:
    """The longest path from a source to each box; sources are just above the first box that takes them."""
    after: list[list[int]] = [[] for _ in range(count)]
    waits = [0] * count
    for value in values:
        for head in value.heads:
            after[value.tail].append(head)
            waits[head] += 1
    ranks = [0] * count
    sources = [box for box in range(count) if not waits[box]]
    ready = sources.copy()
    while ready:
        box = ready.pop()
        for head in after[box]:
            ranks[head] = max(ranks[head], ranks[box] + 1)
            waits[head] -= 1
            if not waits[head]:
                ready.append(head)
    for box in sources:
        ranks[box] = min((ranks[head] for head in after[box]), default=1) - 1
    return ranks


# The order within layers.


def _order(web: _Web) -> None:
    """Sweep down and up, with every node near the middle of its neighbors; keep the best order found."""
    sweeps = 24 if len(web.layer) < 2000 else 6
    best = [layer.copy() for layer in web.layers]
    fewest = _crossings(web)
    for k in range(sweeps):
        if fewest == 0:
            break
        down = k % 2 == 0
        neighbors = web.above if down else web.below
        place = [0.0] * len(web.layer)
        for layer in web.layers if down else web.layers[::-1]:
            for position, node in enumerate(layer):
                place[node] = float(position)
            middle = {
                node: _mean([place[n] for n in neighbors[node]], place[node]) for node in layer
            }
            layer.sort(key=middle.__getitem__)
            for position, node in enumerate(layer):
                place[node] = float(position)
        crossings = _crossings(web)
        if crossings < fewest:
            fewest, best = crossings, [layer.copy() for layer in web.layers]
    web.layers = best


def _mean(numbers: list[float], otherwise: float) -> float:
    return sum(numbers) / len(numbers) if numbers else otherwise


def _crossings(web: _Web) -> int:
    """The number of edge crossings: inversions among the lower ends, in the order of the upper ends."""
    total = 0
    for upper, lower in pairwise(web.layers):
        place = {node: k for k, node in enumerate(lower)}
        met: list[int] = []
        for node in upper:
            ends = sorted(place[n] for n in web.below[node])
            total += sum(len(met) - bisect_right(met, end) for end in ends)
            for end in ends:
                insort(met, end)
    return total


# Places.


def _columns(web: _Web) -> list[float]:
    """Move every node as near to the middle of its neighbors as its layer allows."""
    x = [0.0] * len(web.layer)
    rows = [(layer, _offsets(web, layer)) for layer in web.layers]
    for layer, offsets in rows:
        for node, offset in zip(layer, offsets, strict=True):
            x[node] = offset - offsets[-1] / 2
    both = [up + down for up, down in zip(web.above, web.below, strict=True)]
    rounds = [web.above, web.below] * 4 + [both] * (24 if len(x) < 2000 else 4)
    for k, neighbors in enumerate(rounds):
        for layer, offsets in rows if k % 2 == 0 else rows[::-1]:
            wanted, weights = [], []
            for node in layer:
                pulls = [web.pull(node, other) for other in neighbors[node]]
                weight = sum(pulls)
                weights.append(weight or 0.01)
                moments = sum(p * x[n] for p, n in zip(pulls, neighbors[node], strict=True))
                wanted.append(moments / weight if weight else x[node])
            places = _spread(wanted, weights, offsets)
            for node, place in zip(layer, places, strict=True):
                x[node] = place
    _straighten(web, x)
    left = min((x[n] - web.width[n] / 2 for n in range(len(x))), default=0.0)
    return [place - left + _MARGIN for place in x]


def _straighten(web: _Web, x: list[float]) -> None:
    """Move beads, and boxes in a chain, under those above them, and over those below, where there is room."""
    for neighbors, back, layers in (
        (web.below, web.above, web.layers[::-1]),
        (web.above, web.below, web.layers),
    ):
        for layer in layers:
            for k, node in enumerate(layer):
                stiff = [
                    n
                    for n in neighbors[node]
                    if min(n, node) >= web.boxes or len(neighbors[node]) == len(back[n]) == 1
                ]
                if len(stiff) == 1:
                    place = x[stiff[0]]
                    if k:
                        place = max(place, x[layer[k - 1]] + web.space(layer[k - 1], node))
                    if k + 1 < len(layer):
                        place = min(place, x[layer[k + 1]] - web.space(node, layer[k + 1]))
                    x[node] = place


def _offsets(web: _Web, layer: list[int]) -> list[float]:
    """The places of a layer's nodes, packed as closely as possible."""
    offsets = [0.0]
    for left, right in pairwise(layer):
        offsets.append(offsets[-1] + web.space(left, right))
    return offsets


def _spread(wanted: list[float], weights: list[float], offsets: list[float]) -> list[float]:
    """The places nearest to the wanted ones, in least squares, that keep the distances.

    After subtracting the offsets, the places must be non-decreasing: neighbors that violate this are merged
    at their mean (monotone regression).
    """
    blocks: list[tuple[float, float, int]] = []  # mean, weight, count
    for want, weight, offset in zip(wanted, weights, offsets, strict=True):
        mean, total, count = want - offset, weight, 1
        while blocks and blocks[-1][0] > mean:
            other, heavy, many = blocks.pop()
            mean = (mean * total + other * heavy) / (total + heavy)
            total += heavy
            count += many
        blocks.append((mean, total, count))
    means = [mean for mean, _, count in blocks for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _rows(web: _Web) -> tuple[list[float], list[float]]:
    """The top and the height of every layer."""
    heights = [max((web.height[node] for node in layer), default=0.0) for layer in web.layers]
    tops, y = [], _MARGIN
    for height in heights:
        tops.append(y)
        y += height + _BETWEEN
    return tops, heights
