"""Rotations in three dimensions, with the names, arguments and conventions of scipy.spatial.transform.

A rotation is a unit quaternion, scalar last. Conversions from and to rotation vectors are power series of the
squared angle near 0, so all derivatives exist there.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.shapes import dtype_of, shape_of
from functrans.ops.elementwise import root_of_squares
from functrans.scipy import linalg
from functrans.scipy.loading import load
from functrans.surface.shaping import take
from functrans.surface.table import as_array, decided, holds_tracer, known, ndim_of

st = load("scipy.spatial.transform")

__all__ = ["Rotation", "Slerp"]


def __dir__() -> list[str]:
    return __all__


def _floating(x: Any, size: int, name: str) -> Any:
    x = as_array(x).astype(np.float64)
    if ndim_of(x) == 0 or shape_of(x)[-1] != size:
        raise ValueError(
            f"Expected `{name}` to have {size} entries along its last axis, got shape {shape_of(x)}."
        )
    return x


# Functions of quaternions, along the last axis.


def _product(p: Any, q: Any) -> Any:
    p_vector, q_vector, p_scalar, q_scalar = p[..., :3], q[..., :3], p[..., 3:], q[..., 3:]
    vector = p_scalar * q_vector + q_scalar * p_vector + np.cross(p_vector, q_vector)
    scalar = p_scalar * q_scalar - np.sum(p_vector * q_vector, axis=-1, keepdims=True)
    return np.concatenate([vector, scalar], axis=-1)


def _normalized(q: Any) -> Any:
    return q / np.sqrt(np.sum(q * q, axis=-1, keepdims=True))


def _series(coefficients: list[float], x: Any) -> Any:
    total: Any = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = coefficient + x * total
    return total


# sin(√s/2)/√s and cos(√s/2), and 2 asin(√s)/√s: analytic in s.
_SINE = [(-1) ** k / (2 * 4**k * math.factorial(2 * k + 1)) for k in range(9)]
_COSINE = [(-1) ** k / (4**k * math.factorial(2 * k)) for k in range(9)]
_ARCSINE = [
    2 * math.factorial(2 * k) / (4**k * math.factorial(k) ** 2 * (2 * k + 1)) for k in range(12)
]


def _quaternion_of_vector(rotvec: Any) -> Any:
    square = np.sum(rotvec * rotvec, axis=-1, keepdims=True)
    small = square < 0.25
    near, angle = np.where(small, square, 0.0), np.sqrt(np.where(small, 1.0, square))
    sine = np.where(small, _series(_SINE, near), np.sin(angle / 2) / angle)
    cosine = np.where(small, _series(_COSINE, near), np.cos(angle / 2))
    return np.concatenate([rotvec * sine, cosine], axis=-1)


def _vector_of_quaternion(q: Any) -> Any:
    q = np.where(q[..., 3:] < 0, -q, q)
    vector, scalar = q[..., :3], q[..., 3:]
    square = np.sum(vector * vector, axis=-1, keepdims=True)
    small = square < 0.02
    near, size = np.where(small, square, 0.0), np.sqrt(np.where(small, 1.0, square))
    far = 2 * np.arctan2(size, np.where(small, 1.0, scalar)) / size
    return vector * np.where(small, _series(_ARCSINE, near), far)


def _matrix_of_quaternion(q: Any) -> Any:
    x, y, z, w = (q[..., k] for k in range(4))
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def _quaternion_of_matrix(m: Any) -> Any:
    """From the largest of 4x², 4y², 4z² and 4w², times a number that normalizing takes away."""
    trace = m[..., 0, 0] + m[..., 1, 1] + m[..., 2, 2]
    candidates = []
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        entries: list[Any] = [None] * 4
        entries[i] = 1 - trace + 2 * m[..., i, i]
        entries[j] = m[..., j, i] + m[..., i, j]
        entries[k] = m[..., k, i] + m[..., i, k]
        entries[3] = m[..., k, j] - m[..., j, k]
        candidates.append(np.stack(entries, axis=-1))
    last = [
        m[..., 2, 1] - m[..., 1, 2],
        m[..., 0, 2] - m[..., 2, 0],
        m[..., 1, 0] - m[..., 0, 1],
        1 + trace,
    ]
    candidates.append(np.stack(last, axis=-1))
    sizes = np.stack([m[..., 0, 0], m[..., 1, 1], m[..., 2, 2], trace], axis=-1)
    choice = np.argmax(sizes, axis=-1)[..., None, None]
    found = np.take_along_axis(np.stack(candidates, axis=-2), choice, axis=-2)
    return _normalized(found[..., 0, :])


def _elementary(axis: int, angle: Any) -> Any:
    sine, cosine = np.sin(angle / 2), np.cos(angle / 2)
    entries = [0 * angle] * 3 + [cosine]
    entries[axis] = sine
    return np.stack(entries, axis=-1)


def _read_sequence(seq: str, lengths: tuple[int, ...]) -> tuple[bool, list[int]]:
    """Whether the axes turn along, and the axes."""
    if len(seq) not in lengths or not re.fullmatch("[xyz]+|[XYZ]+", seq):
        raise ValueError(
            f"Expected axes from `seq` to be from ['x', 'y', 'z'] or ['X', 'Y', 'Z'], as many as "
            f"{' or '.join(map(str, lengths))}, got {seq}"
        )
    axes = ["xyz".index(letter) for letter in seq.lower()]
    if any(one == other for one, other in itertools.pairwise(axes)):
        raise ValueError(f"Expected consecutive axes to be different, got {seq}")
    return seq.isupper(), axes


def _radians(angles: Any, degrees: bool) -> Any:
    return angles * (math.pi / 180) if degrees else angles


def _degrees(angles: Any, degrees: bool) -> Any:
    return angles * (180 / math.pi) if degrees else angles


def _euler_of_quaternion(q: Any, seq: str) -> Any:
    """Bernardes and Viallet, Quaternion to Euler angles conversion, PLoS ONE 17 (2022).

    Where the first and the last axis coincide, the angles jump: they are SciPy's, with derivative nan.
    """
    intrinsic, axes = _read_sequence(seq, (3,))
    i, j, k = axes[::-1] if intrinsic else axes
    symmetric = i == k
    if symmetric:
        k = 3 - i - j
    sign = (i - j) * (j - k) * (k - i) // 2
    entries = [q[..., each] for each in range(4)]
    if symmetric:
        a, b, c, d = entries[3], entries[i], entries[j], entries[k] * sign
    else:
        a, b = entries[3] - entries[j], entries[i] + entries[k] * sign
        c, d = entries[j] + entries[3], entries[k] * sign - entries[i]
    middle = 2 * np.arctan2(np.hypot(c, d), np.hypot(a, b))
    half_sum, half_difference = np.arctan2(b, a), np.arctan2(d, c)
    at_zero, at_pi = np.abs(middle) <= 1e-7, np.abs(middle - math.pi) <= 1e-7
    jumps = 0 * (half_sum + half_difference)  # where one of them has no derivative, nothing has
    first, third = half_sum - half_difference, half_sum + half_difference
    if intrinsic:
        first, third = third, first
    alone = np.where(at_zero, 2 * half_sum, (2 if intrinsic else -2) * half_difference) + jumps
    first = np.where(at_zero | at_pi, alone, first)
    third = np.where(at_zero | at_pi, jumps, third)
    if not symmetric:
        third, first = (third, first * sign) if intrinsic else (third * sign, first)
        middle = middle - math.pi / 2
    angles = np.stack([first, middle, third], axis=-1)
    angles = np.where(angles < -math.pi, angles + 2 * math.pi, angles)
    return np.where(angles > math.pi, angles - 2 * math.pi, angles)


class Rotation:
    """A rotation in three dimensions, or an array of rotations; see `scipy.spatial.transform.Rotation`.

    It is made by `from_quat`, `from_matrix`, `from_rotvec`, `from_mrp`, `from_euler` or `from_davenport`,
    and read with `as_quat`, `as_matrix`, `as_rotvec`, `as_mrp` or `as_euler`. `p * q` is q followed by p.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jacrev
    >>> from functrans.scipy.spatial.transform import Rotation
    >>> jacrev(lambda v: Rotation.from_rotvec(v).apply(np.array([1.0, 0.0, 0.0])))(np.zeros(3))
    array([[ 0.,  0.,  0.],
           [ 0.,  0.,  1.],
           [ 0., -1.,  0.]])
    """

    def __init__(
        self, quat: Any, normalize: bool = True, copy: bool = True, scalar_first: bool = False
    ) -> None:
        q = _floating(quat, 4, "quat")
        if scalar_first:
            q = np.roll(q, -1, axis=-1)
        if normalize:
            zero = np.any(np.all(q == 0, axis=-1))
            if known(zero):
                raise ValueError("Found zero norm quaternions in `quat`.")
            q = _normalized(q)
        self._quat = q

    @classmethod
    def _raw(cls, quat: Any) -> Rotation:
        made = cls.__new__(cls)
        made._quat = quat
        return made

    @classmethod
    def _adopted(cls, rotation: Any) -> Rotation:
        """A rotation of SciPy as one of ours."""
        if isinstance(rotation, Rotation):
            return rotation
        if isinstance(rotation, st.Rotation):
            return cls._raw(rotation.as_quat())
        raise TypeError(f"expected a Rotation, got {type(rotation).__name__}")

    def __repr__(self) -> str:
        return f"Rotation.from_quat({self._quat!r})"

    @staticmethod
    def from_quat(quat: Any, *, scalar_first: bool = False) -> Rotation:
        """A rotation from a quaternion, which need not have norm 1."""
        return Rotation(quat, scalar_first=scalar_first)

    @staticmethod
    def from_matrix(matrix: Any, *, assume_valid: bool = False) -> Rotation:
        """A rotation from a matrix; one that is not orthogonal is replaced by the nearest that is."""
        m = _floating(matrix, 3, "matrix")
        if shape_of(m)[-2:] != (3, 3):
            raise ValueError(f"Expected `matrix` to have shape (..., 3, 3), got {shape_of(m)}.")
        if not assume_valid:
            if known(np.any(np.linalg.det(m) <= 0)):
                raise ValueError("Non-positive determinant (left-handed or null coordinate frame)")
            m = linalg.polar(m)[0]
        return Rotation._raw(_quaternion_of_matrix(m))

    @staticmethod
    def from_rotvec(rotvec: Any, degrees: bool = False) -> Rotation:
        """A rotation from its axis times its angle."""
        return Rotation._raw(
            _quaternion_of_vector(_radians(_floating(rotvec, 3, "rotvec"), degrees))
        )

    @staticmethod
    def from_mrp(mrp: Any) -> Rotation:
        """A rotation from modified Rodrigues parameters, its axis times tan(angle/4)."""
        vector = _floating(mrp, 3, "mrp")
        square = np.sum(vector * vector, axis=-1, keepdims=True)
        return Rotation._raw(np.concatenate([2 * vector, 1 - square], axis=-1) / (1 + square))

    @staticmethod
    def from_euler(seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """A rotation from angles around axes, which turn along if `seq` is in upper case."""
        intrinsic, axes = _read_sequence(seq, (1, 2, 3))
        angles = as_array(angles).astype(np.float64)
        lead = st.Rotation.from_euler(seq, np.zeros(shape_of(angles))).as_quat().shape[:-1]
        angles = _radians(angles.reshape((*lead, len(axes))), degrees)
        parts = [_elementary(axis, angles[..., k]) for k, axis in enumerate(axes)]
        return Rotation._raw(_composed(parts, intrinsic))

    @staticmethod
    def from_davenport(axes: Any, order: str, angles: Any, degrees: bool = False) -> Rotation:
        """A rotation from angles around given axes, the second orthogonal to the others."""
        if order not in ("e", "extrinsic", "i", "intrinsic"):
            raise ValueError(
                "order should be 'e'/'extrinsic' for extrinsic sequences or 'i'/'intrinsic'"
            )
        directions = np.atleast_2d(_floating(axes, 3, "axes"))
        directions = directions / np.sqrt(np.sum(directions * directions, axis=-1, keepdims=True))
        count = shape_of(directions)[0]
        angles = as_array(angles).astype(np.float64)
        if ndim_of(angles) == 0 and count == 1:
            angles = angles.reshape((1,))
        angles = _radians(_floating(angles, count, "angles"), degrees)
        parts = [
            _quaternion_of_vector(directions[k] * angles[..., k : k + 1]) for k in range(count)
        ]
        return Rotation._raw(_composed(parts, order.startswith("i")))

    @staticmethod
    def identity(num: int | None = None, *, shape: Any = None) -> Rotation:
        """The rotation that turns nothing, or several of them."""
        options = {} if shape is None else {"shape": shape}
        return Rotation._raw(st.Rotation.identity(num, **options).as_quat())

    @staticmethod
    def concatenate(rotations: Any) -> Rotation:
        """One object with all the given rotations."""
        if isinstance(rotations, (Rotation, st.Rotation)):
            return Rotation._adopted(rotations)
        every = [np.atleast_2d(Rotation._adopted(each)._quat) for each in rotations]
        return Rotation._raw(np.concatenate(every, axis=0))

    @property
    def single(self) -> bool:
        """Whether this is one rotation."""
        return ndim_of(self._quat) == 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array of rotations."""
        return shape_of(self._quat)[:-1]

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Single rotation has no len().")
        return self.shape[0]

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, indexer: Any) -> Rotation:
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        if isinstance(indexer, tuple):
            indexer = (*indexer, slice(None)) if Ellipsis in indexer else indexer
        if holds_tracer(indexer):  # a plain array cannot be indexed by one
            return Rotation._raw(take(self._quat, indexer, axis=0))
        return Rotation._raw(self._quat[indexer])

    def __iter__(self) -> Iterator[Rotation]:
        if self.single:
            raise TypeError("Single rotation is not iterable.")
        return iter([self[k] for k in range(len(self))])

    def as_quat(self, canonical: bool = False, *, scalar_first: bool = False) -> Any:
        """The quaternion, with the scalar last; `canonical` makes its last entry that is not 0 positive."""
        q = self._quat
        if canonical:
            x, y, z, w = (q[..., k : k + 1] for k in range(4))
            last = np.where(w != 0, w, np.where(x != 0, x, np.where(y != 0, y, z)))
            q = np.where(last < 0, -q, q)
        return np.roll(q, 1, axis=-1) if scalar_first else q + 0.0

    def as_matrix(self) -> Any:
        """The matrix."""
        return _matrix_of_quaternion(self._quat)

    def as_rotvec(self, degrees: bool = False) -> Any:
        """The axis times the angle, which is at most π."""
        return _degrees(_vector_of_quaternion(self._quat), degrees)

    def as_mrp(self) -> Any:
        """The axis times tan(angle/4)."""
        q = np.where(self._quat[..., 3:] < 0, -self._quat, self._quat)
        return q[..., :3] / (1 + q[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False, *, suppress_warnings: bool = False) -> Any:
        """The angles around three axes, which turn along if `seq` is in upper case."""
        return _degrees(_euler_of_quaternion(self._quat, seq), degrees)

    def as_davenport(
        self, axes: Any, order: str, degrees: bool = False, *, suppress_warnings: bool = False
    ) -> Any:
        """The angles around three given axes, the second orthogonal to the others."""
        if not holds_tracer((self._quat, axes)):
            return self._plain().as_davenport(
                axes, order, degrees, suppress_warnings=suppress_warnings
            )
        if order not in ("e", "extrinsic", "i", "intrinsic"):
            raise ValueError(
                "order should be 'e'/'extrinsic' for extrinsic sequences or 'i'/'intrinsic'"
            )
        directions = _floating(axes, 3, "axes")
        if shape_of(directions) != (3, 3):
            raise ValueError(f"Expected axes to have shape (3, 3), got {shape_of(directions)}.")
        directions = directions / np.sqrt(np.sum(directions * directions, axis=-1, keepdims=True))
        intrinsic = order.startswith("i")
        first, second, third = directions if intrinsic else directions[::-1]
        # The third axis is the first one, turned around the second by λ. So the rotation, followed by λ,
        # has Euler angles around first, second and first again.
        lambda_ = np.arctan2(np.sum(np.cross(first, third) * second), np.sum(first * third))
        turned = (self * Rotation.from_rotvec(lambda_ * second))._quat
        frame = np.stack([first, second, np.cross(first, second)])
        vector = np.sum(frame * turned[..., None, :3], axis=-1)
        angles = _euler_of_quaternion(np.concatenate([vector, turned[..., 3:]], axis=-1), "XYX")
        a, middle, c = (angles[..., k] for k in range(3))
        # Of the two solutions, SciPy chooses by the sign of λ.
        flipped = lambda_ < 0
        opposite: Any = lambda angle: angle - np.where(angle < 0, -np.pi, np.pi)
        a, c = (np.where(flipped, opposite(angle), angle) for angle in (a, c))
        middle = np.where(flipped, -middle, middle) - lambda_
        parts = (a, middle, c) if intrinsic else (c, middle, a)
        return _degrees(np.stack(parts, axis=-1), degrees)

    def _plain(self) -> Any:
        return st.Rotation.from_quat(self._quat)

    def apply(self, vectors: Any, inverse: bool = False) -> Any:
        """Vectors along the last axis, turned, or turned back."""
        v = _floating(vectors, 3, "vectors")
        matrix = self.as_matrix()
        return np.sum(
            (np.swapaxes(matrix, -1, -2) if inverse else matrix) * v[..., None, :], axis=-1
        )

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, (Rotation, st.Rotation)):
            return NotImplemented
        return Rotation._raw(_normalized(_product(self._quat, Rotation._adopted(other)._quat)))

    def __rmul__(self, other: Any) -> Any:
        return Rotation._adopted(other) * self if isinstance(other, st.Rotation) else NotImplemented

    def __pow__(self, n: Any, modulus: None = None) -> Rotation:
        if modulus is not None:
            raise NotImplementedError("modulus not supported")
        if not holds_tracer(n):
            if n == 1:
                return Rotation._raw(self._quat)
            if n == -1:
                return self.inv()
        return Rotation._raw(_quaternion_of_vector(_vector_of_quaternion(self._quat) * n))

    def inv(self) -> Rotation:
        """The rotation back."""
        return Rotation._raw(self._quat * np.array([-1.0, -1.0, -1.0, 1.0]))

    def magnitude(self) -> Any:
        """The angle, between 0 and π; the derivative at 0 is 0."""
        vector = self._quat[..., :3]
        size = root_of_squares(np.sum(vector * vector, axis=-1))
        return 2 * np.arctan2(size, np.abs(self._quat[..., 3]))

    def approx_equal(self, other: Any, atol: float | None = None, degrees: bool = False) -> Any:
        """Whether rotations differ by less than an angle, by default 1e-8."""
        limit = 1e-8 if atol is None else _radians(atol, degrees)
        return (self * Rotation._adopted(other).inv()).magnitude() < limit

    def mean(self, weights: Any = None, axis: Any = None) -> Rotation:
        """The rotation with the smallest weighted squared chordal distance to all."""
        if axis is not None:
            raise errors.MissingRuleError(
                f"Rotation.mean with axis= has no rule for traced values, at "
                f"{errors.user_location()}. Leave it out, and take the mean of each part."
            )
        rows = self._quat.reshape((-1, 4))
        weights = np.ones(shape_of(rows)[0]) if weights is None else as_array(weights)
        _, vectors = np.linalg.eigh((rows * weights.reshape(-1)[:, None]).T @ rows)
        return Rotation._raw(vectors[:, -1])


def _composed(parts: Iterable[Any], intrinsic: bool) -> Any:
    """Quaternions one after another; around axes that turn along, the first is applied last."""
    total: Any = None
    for part in parts:
        if total is None:
            total = part
        else:
            total = _product(total, part) if intrinsic else _product(part, total)
    return total


class Slerp:
    """Rotations at times in between given ones, along the shortest arcs; see `scipy.spatial.transform.Slerp`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.spatial.transform import Rotation, Slerp
    >>> turn = Slerp([0.0, 2.0], Rotation.from_rotvec(np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])))
    >>> round(float(grad(lambda t: turn(t).as_rotvec()[2])(0.5)), 6)
    0.5
    """

    def __init__(self, times: Any, rotations: Any) -> None:
        held = Rotation._adopted(rotations)
        if held.single or len(held) == 1:
            raise ValueError("`rotations` must be a sequence of at least 2 rotations.")
        self.times = as_array(times)
        if dtype_of(self.times).kind != "f":
            self.times = self.times.astype(np.float64)
        if ndim_of(self.times) != 1 or shape_of(self.times)[0] != len(held):
            raise ValueError(
                "Expected number of rotations to be equal to number of timestamps given"
            )
        self.timedelta = np.diff(self.times)
        if known(np.any(self.timedelta <= 0)):
            raise ValueError("Times must be in strictly increasing order.")
        self.rotations = held[:-1]
        self.rotvecs = (self.rotations.inv() * held[1:]).as_rotvec()

    def __call__(self, times: Any) -> Rotation:
        """The rotations at these times."""
        times = as_array(times).astype(dtype_of(self.times))
        if ndim_of(times) > 1:
            raise ValueError("`times` must be at most 1-dimensional.")
        outside = (times < self.times[0]) | (times > self.times[-1])
        if decided(np.any(outside), "whether times are in range is unknown", "Do not stage it."):
            raise ValueError("Interpolation times must be within the given range, both inclusive.")
        place = np.maximum(np.searchsorted(self.times, times) - 1, 0)
        start, span = (take(each, place, axis=0) for each in (self.times, self.timedelta))
        arcs = take(self.rotvecs, place, axis=0) * ((times - start) / span)[..., None]
        found: Rotation = self.rotations[place] * Rotation.from_rotvec(arcs)
        return found


# What SciPy's own rotations do with traced arguments. Those that make one are static.


def _of_rotation(name: str) -> Callable[..., Any]:
    return lambda self, *args, **kwds: getattr(Rotation._adopted(self), name)(*args, **kwds)


METHODS: dict[tuple[type, str], Callable[..., Any]] = {
    **{
        (st.Rotation, name): _of_rotation(name)
        for name in ("apply", "__mul__", "__pow__", "mean", "approx_equal")
    },
    **{
        (st.Rotation, name): getattr(Rotation, name)
        for name in (
            "from_quat",
            "from_matrix",
            "from_rotvec",
            "from_mrp",
            "from_euler",
            "from_davenport",
            "concatenate",
        )
    },
    (st.Slerp, "__call__"): lambda self, times: Slerp(self.times, _with_end(self))(times),
}


def _with_end(slerp: Any) -> Any:
    """All rotations of SciPy's object, which holds those at the beginnings and the arcs from there."""
    starts = Rotation._adopted(slerp.rotations)
    end = starts[-1:] * Rotation.from_rotvec(slerp.rotvecs[-1:])
    return Rotation.concatenate([starts, end])
