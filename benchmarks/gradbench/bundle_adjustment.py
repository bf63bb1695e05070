"""BA: the reprojection errors of points seen by cameras, and their sparse Jacobian.

A camera is a rotation (Rodrigues' vector), a center, a focal length, a principal point and two coefficients
of radial distortion: 11 numbers. The two errors of an observation depend on one camera, one point and one
weight, so the Jacobian is 2 x 15 numbers for each observation; `sparse_matrix` puts them in their places,
together with the derivatives of the weights' own errors, 1 - w^2, which are -2 w.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.gradbench.problem import Problem, Size

CAMERA = 11


def objective(lib: Any, seen: Any, features: Any) -> Any:
    """The errors, (2, p). `seen` has a camera, a point and a weight for each of the p observations."""
    xp = lib.xp
    cameras, points, weights = seen
    rotation = cameras[:, :3]
    offset = points - cameras[:, 3:6]
    # Rodrigues: x cos t + (w cross x) sin t + w (w.x) (1 - cos t), for the axis w and the angle t > 0
    angle = xp.sqrt(xp.sum(rotation * rotation, 1))
    axis = rotation / angle[:, None]
    cosine, sine = xp.cos(angle), xp.sin(angle)
    along = xp.sum(axis * offset, 1) * (1.0 - cosine)
    a, b, c = axis[:, 0], axis[:, 1], axis[:, 2]
    x, y, z = offset[:, 0], offset[:, 1], offset[:, 2]
    depth = z * cosine + (a * y - b * x) * sine + c * along
    u = (x * cosine + (b * z - c * y) * sine + a * along) / depth
    v = (y * cosine + (c * x - a * z) * sine + b * along) / depth
    radius = u * u + v * v
    stretch = (1.0 + cameras[:, 9] * radius + cameras[:, 10] * radius * radius) * cameras[:, 6]
    return xp.stack(
        [
            weights * (u * stretch + cameras[:, 7] - features[:, 0]),
            weights * (v * stretch + cameras[:, 8] - features[:, 1]),
        ]
    )


def by_hand(seen: Any, features: Any) -> Any:
    """For each of the two errors, its derivatives with respect to camera, point and weight."""
    cameras, points, weights = seen
    r = cameras[:, :3]
    offset = points - cameras[:, 3:6]
    square = np.sum(r * r, 1)
    angle = np.sqrt(square)
    cosine = np.cos(angle)
    a, b = np.sin(angle) / angle, (1 - cosine) / square
    # rotated = cos x + a (r cross x) + b r (r.x)
    cross, along = np.cross(r, offset), np.sum(r * offset, 1)
    rotated = cosine[:, None] * offset + a[:, None] * cross + (b * along)[:, None] * r
    outer = lambda p, q: p[:, :, None] * q[:, None, :]
    scaled = lambda s, matrix: s[:, None, None] * matrix
    identity = np.eye(3)[None]
    by_offset = scaled(cosine, identity) + scaled(a, crossing(r)) + scaled(b, outer(r, r))
    # d cos = -a r dr, da = (cos - a) r dr / t^2, db = (a - 2 b) r dr / t^2
    direction = (
        -a[:, None] * offset
        + ((cosine - a) / square)[:, None] * cross
        + ((a - 2 * b) / square * along)[:, None] * r
    )
    by_rotation = (
        outer(direction, r)
        - scaled(a, crossing(offset))
        + scaled(b * along, identity)
        + scaled(b, outer(r, offset))
    )
    u, v = rotated[:, 0] / rotated[:, 2], rotated[:, 1] / rotated[:, 2]
    radius = u * u + v * v
    k1, k2, focal = cameras[:, 9], cameras[:, 10], cameras[:, 6]
    stretch = 1 + k1 * radius + k2 * radius * radius
    bend = 2 * (k1 + 2 * k2 * radius)  # d stretch = bend (u du + v dv)
    result = []
    for k, w in enumerate((u, v)):
        by_u, by_v = w * bend * u + stretch * (k == 0), w * bend * v + stretch * (k == 1)
        by_rotated = np.stack([by_u, by_v, -(by_u * u + by_v * v)], 1)
        by_rotated *= (weights * focal / rotated[:, 2])[:, None]
        by_point = (by_rotated[:, None, :] @ by_offset)[:, 0]
        by_camera = np.zeros((len(cameras), CAMERA))
        by_camera[:, :3] = (by_rotated[:, None, :] @ by_rotation)[:, 0]
        by_camera[:, 3:6] = -by_point
        by_camera[:, 6] = weights * w * stretch
        by_camera[:, 7 + k] = weights
        by_camera[:, 9] = weights * focal * w * radius
        by_camera[:, 10] = weights * focal * w * radius * radius
        by_weight = w * stretch * focal + cameras[:, 7 + k] - features[:, k]
        result.append([by_camera, by_point, by_weight])
    return result


def crossing(x: Any) -> Any:
    """The matrices of y -> x cross y."""
    matrix = np.zeros((len(x), 3, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        matrix[:, i, j], matrix[:, j, i] = -x[:, k], x[:, k]
    return matrix


def sparse_matrix(
    blocks: Any, weights: Any, observations: Any, cameras: int, points: int
) -> tuple[Any, Any, Any]:
    """(rows, columns, values) of the whole Jacobian, 3 p x (11 cameras + 3 points + p)."""
    p = len(weights)
    camera, point = observations
    columns = np.concatenate(
        [
            CAMERA * camera[:, None] + np.arange(CAMERA),
            CAMERA * cameras + 3 * point[:, None] + np.arange(3),
            CAMERA * cameras + 3 * points + np.arange(p)[:, None],
        ],
        axis=1,
    )
    values = [
        np.concatenate([by_camera, by_point, by_weight[:, None]], 1)
        for by_camera, by_point, by_weight in blocks
    ]
    rows = [np.repeat(2 * np.arange(p) + k, CAMERA + 4) for k in range(2)]
    return (
        np.concatenate([*rows, 2 * p + np.arange(p)]),
        np.concatenate([columns.ravel(), columns.ravel(), columns[:, -1]]),
        np.concatenate([values[0].ravel(), values[1].ravel(), -2.0 * weights]),
    )


def scene(cameras: int, points: int, p: int) -> tuple[Any, Any, Any, Any, Any]:
    """Cameras, points, weights, features and observations: who is seen by whom."""
    random = np.random.default_rng(0)
    lenses = np.concatenate(
        [
            random.uniform(0.05, 0.3, (cameras, 3)),
            random.uniform(-0.5, 0.5, (cameras, 3)),
            random.uniform(0.8, 1.2, (cameras, 1)),
            random.uniform(-0.1, 0.1, (cameras, 2)),
            random.uniform(-0.1, 0.1, (cameras, 2)),
        ],
        axis=1,
    )
    places = random.uniform(-1, 1, (points, 3)) + np.array([0.0, 0.0, 5.0])
    observations = (np.arange(p) % cameras, np.arange(p) % points)
    return lenses, places, random.uniform(0.5, 1.5, p), random.uniform(-1, 1, (p, 2)), observations


def data(cameras: int, points: int, p: int) -> tuple[Any, ...]:
    lenses, places, weights, features, (camera, point) = scene(cameras, points, p)
    return (lenses[camera], places[point], weights), features


PROBLEM = Problem(
    name="ba",
    title="bundle adjustment",
    kind="row_jacobian",
    derivative="sparse Jacobian, 2 x 15 for each observation",
    objective=objective,
    data=data,
    by_hand=by_hand,
    sizes=tuple(
        Size(f"p = {p:,}", {"cameras": cameras, "points": points, "p": p}, work=p, n=p)
        for cameras, points, p in (
            (5, 250, 1_000),
            (15, 1_250, 5_000),
            (49, 7_776, 31_843),
            (161, 48_126, 182_072),
        )
    ),
    tiny={"cameras": 2, "points": 3, "p": 5},
    growth="observations",
)
