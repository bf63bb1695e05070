"""functrans.scipy.spatial.transform, held against SciPy and against the laws."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation as Reference
from scipy.spatial.transform import Slerp as ReferenceSlerp

import functrans as ft
from functrans.scipy.spatial import transform
from functrans.scipy.spatial.transform import Rotation, Slerp
from tests.support.oracles import assert_trees_close, loop_vmap
from tests.support.scipy_cases import check_derivatives, check_lanes, check_staging

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(5, 3))
FORMS = {
    "quat": RNG.normal(size=(4, 4)),
    "matrix": Reference.from_rotvec(VECTORS).as_matrix(),
    "rotvec": VECTORS,
    "mrp": 0.5 * VECTORS,
}
EULER = ["xyz", "zyx", "XYZ", "ZYX", "zxz", "YXY", "ZXZ", "yzx", "XZY", "xzx"]


def traced(function, *args):
    return ft.jvp(function, args, tuple(np.zeros_like(arg) for arg in args))[0]


@pytest.mark.parametrize("target", ["quat", "matrix", "rotvec", "mrp"])
@pytest.mark.parametrize("source", FORMS)
def test_from_each_form_to_each(source, target):
    for x in (FORMS[source], FORMS[source][0]):
        convert = lambda kind, x: getattr(getattr(kind, f"from_{source}")(x), f"as_{target}")()
        ours, expected = lambda x, c=convert: c(Rotation, x), convert(Reference, x)
        got = traced(ours, x)
        if target == "quat" and source == "matrix":  # either of two signs
            expected = expected * np.sign(np.sum(got * expected, axis=-1, keepdims=True))
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(ours(x), got, rtol=1e-13, atol=1e-15)
        check_derivatives(ours, (x,))
        check_lanes(ours, (x,))


@pytest.mark.parametrize("seq", EULER)
def test_euler_angles(seq):
    for angles in (
        RNG.uniform(-1, 1, size=(4, 3)) + 1.2 * (seq[0] == seq[2]),
        np.array([0.3, 0.7, -2]),
    ):
        back = lambda a: Rotation.from_euler(seq, a).as_euler(seq)
        np.testing.assert_allclose(traced(back, angles), angles, rtol=1e-11)
        for degrees in (False, True):
            there = lambda kind, a, d=degrees: kind.from_euler(seq, a, d).as_matrix()
            other = lambda kind, v, d=degrees: kind.from_rotvec(v).as_euler(seq, d)
            for convert, x in ((there, angles), (other, VECTORS)):
                ours = lambda x, c=convert: c(Rotation, x)
                np.testing.assert_allclose(
                    traced(ours, x), convert(Reference, x), rtol=1e-11, atol=1e-12
                )
                check_derivatives(ours, (x,), rtol=1e-5, atol=1e-6)
        check_lanes(lambda a: Rotation.from_euler(seq, a).as_euler(seq[::-1]), (angles,))


def test_sequences_of_one_and_two_axes():
    for seq, angles in (("z", 0.3), ("X", np.array([0.3])), ("y", np.array([[0.3], [0.4]]))):
        ours = lambda a, s=seq: Rotation.from_euler(s, a).as_quat()
        expected = Reference.from_euler(seq, angles).as_quat()
        got = traced(ours, np.asarray(angles))
        np.testing.assert_allclose(got, expected, rtol=1e-13)
        assert got.shape == expected.shape
    pair = np.array([0.3, 0.8])
    for seq in ("zx", "ZX"):
        expected = Reference.from_euler(seq, pair).as_quat()
        np.testing.assert_allclose(
            traced(lambda a, s=seq: Rotation.from_euler(s, a).as_quat(), pair), expected, rtol=1e-13
        )
    for wrong in ("xx", "xyzx", "xY", "q"):
        with pytest.raises(ValueError, match="axes"):
            ft.jvp(lambda a, w=wrong: Rotation.from_euler(w, a).as_quat(), (pair,), (pair,))
    with pytest.raises(ValueError, match="angles"):
        ft.jvp(lambda a: Rotation.from_euler("xyz", a).as_quat(), (pair,), (pair,))


@pytest.mark.parametrize("seq", ["xyz", "ZYX", "zxz", "ZXZ"])
def test_where_axes_coincide_angles_are_those_of_scipy_and_slopes_nan(seq):
    middles = (0.0, np.pi) if seq[0] == seq[2] else (-np.pi / 2, np.pi / 2)
    for middle in middles:
        quat = Reference.from_euler(seq, [0.3, middle, 0.4]).as_quat()
        ours = lambda q: Rotation.from_quat(q).as_euler(seq)
        with np.errstate(all="ignore"), pytest.warns(UserWarning, match="Gimbal"):
            expected = Reference.from_quat(quat).as_euler(seq)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(
                Reference.from_euler(seq, traced(ours, quat)).as_matrix(),
                Reference.from_euler(seq, expected).as_matrix(),
                atol=1e-7,
            )
            exact = {"zxz": [0, 0, np.sin(0.2), np.cos(0.2)]}.get(seq)
            if exact is not None:
                slopes = ft.jacrev(ours)(np.array(exact))
                assert np.isnan(slopes).any()


def test_davenport():
    axes = np.array([[0.0, 0.0, 2.0], [1.0, 0.0, 0.0], [0.0, 0.6, 0.8]])
    angles = RNG.normal(size=(2, 3))
    for order in ("e", "intrinsic"):
        ours = lambda a, o=order: Rotation.from_davenport(axes, o, a).as_matrix()
        expected = Reference.from_davenport(axes, order, angles).as_matrix()
        np.testing.assert_allclose(traced(ours, angles), expected, rtol=1e-12, atol=1e-14)
        check_derivatives(ours, (angles,))
    single = traced(lambda a: Rotation.from_davenport(axes[0], "e", a).as_quat(), np.float64(0.3))
    np.testing.assert_allclose(single, Reference.from_davenport(axes[0], "e", 0.3).as_quat())


@pytest.mark.parametrize(
    "third", [(0.0, 0.6, 0.8), (0.0, -0.6, 0.8), (0.0, 0.6, -0.8), (0.0, -0.6, -0.8)]
)
@pytest.mark.parametrize("order", ["extrinsic", "intrinsic"])
def test_angles_around_given_axes(third, order):
    axes = np.array([[0.0, 0.0, 2.0], [1.0, 0.0, 0.0], third])
    vectors = RNG.normal(size=(4, 3))
    ours = lambda v: Rotation.from_rotvec(v).as_davenport(axes, order)
    expected = Reference.from_rotvec(vectors).as_davenport(axes, order)
    np.testing.assert_allclose(traced(ours, vectors), expected, rtol=1e-9, atol=1e-12)
    check_derivatives(ours, (vectors,))


def test_derivatives_exist_at_no_rotation():
    zero, tiny = np.zeros(3), np.full(3, 1e-160)
    point = np.array([1.0, 2.0, 3.0])
    apply = lambda v: Rotation.from_rotvec(v).apply(point)
    cross = -np.array([[0, -3, 2], [3, 0, -1], [-2, 1, 0.0]])
    for v in (zero, tiny):
        np.testing.assert_allclose(ft.jacrev(apply)(v), cross, atol=1e-15)
        np.testing.assert_allclose(ft.jacfwd(apply)(v), cross, atol=1e-15)
        back = lambda v: Rotation.from_rotvec(v).as_rotvec()
        np.testing.assert_allclose(ft.jacrev(back)(v), np.eye(3), atol=1e-15)
        np.testing.assert_allclose(ft.jacfwd(ft.jacrev(back))(v), 0, atol=1e-12)
        np.testing.assert_allclose(ft.jacfwd(ft.jacfwd(ft.jacfwd(back)))(v), 0, atol=1e-10)
    second = ft.hessian(lambda v: point @ apply(v))(zero)  # exp is 1 + K + K²/2
    np.testing.assert_allclose(
        second, np.outer(point, point) - point @ point * np.eye(3), atol=1e-12
    )
    np.testing.assert_array_equal(ft.grad(lambda v: Rotation.from_rotvec(v).magnitude())(zero), 0)


@pytest.mark.parametrize("size", [1e-9, 1e-3, 0.1, 0.28, 0.29, 0.499, 0.501, 3.0, 3.14159])
def test_rotation_vectors_of_every_size(size):
    v = size * np.array([2.0, -1.0, 2.0]) / 3
    for convert in (
        lambda kind, v: kind.from_rotvec(v).as_quat(),
        lambda kind, v: kind.from_rotvec(v).as_rotvec(),
    ):
        ours = lambda v, c=convert: c(Rotation, v)
        np.testing.assert_allclose(traced(ours, v), convert(Reference, v), rtol=1e-12)
        check_derivatives(ours, (v,), rtol=1e-5, atol=1e-6, step=min(1e-4, 0.1 * (np.pi - size)))


def test_composition_application_and_powers():
    quats, others, point = FORMS["quat"], RNG.normal(size=(4, 4)), VECTORS[:4]
    cases = {
        "apply": (lambda R, q, v: R.from_quat(q).apply(v), (quats, point)),
        "inverse": (lambda R, q, v: R.from_quat(q).apply(v, inverse=True), (quats, point)),
        "one": (lambda R, q, v: R.from_quat(q).apply(v), (quats[0], point)),
        "one vector": (lambda R, q, v: R.from_quat(q).apply(v), (quats, point[0])),
        "product": (lambda R, p, q: (R.from_quat(p) * R.from_quat(q)).as_matrix(), (quats, others)),
        "product one": (
            lambda R, p, q: (R.from_quat(p) * R.from_quat(q)).as_quat(),
            (quats, others[0]),
        ),
        "inv": (lambda R, q: R.from_quat(q).inv().as_quat(), (quats,)),
        "magnitude": (lambda R, q: R.from_quat(q).magnitude(), (quats,)),
        "canonical": (lambda R, q: R.from_quat(q).as_quat(canonical=True), (quats,)),
        "first": (
            lambda R, q: R.from_quat(q, scalar_first=True).as_quat(scalar_first=True),
            (quats,),
        ),
        "degrees": (
            lambda R, v: R.from_rotvec(50 * v, degrees=True).as_rotvec(degrees=True),
            (point,),
        ),
        "mean": (
            lambda R, q, w: R.from_quat(q).mean(w).as_matrix(),
            (quats, np.array([1.0, 2, 3, 4])),
        ),
        **{
            f"power {n}": (lambda R, q, n=n: (R.from_quat(q) ** n).as_matrix(), (quats,))
            for n in (0, 1, -1, 2, 0.5, -1.7)
        },
        "indices": (lambda R, q: R.from_quat(q)[1:3].as_quat(), (quats,)),
        "index": (lambda R, q: R.from_quat(q)[-1].as_matrix(), (quats,)),
        "concatenate": (
            lambda R, p, q: R.concatenate([R.from_quat(p), R.from_quat(q)]).as_quat(),
            (quats, others[0]),
        ),
    }
    for name, (function, args) in cases.items():
        ours = lambda *args, f=function: f(Rotation, *args)
        got, expected = traced(ours, *args), function(Reference, *args)
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-13, err_msg=name)
        assert np.shape(got) == np.shape(expected)
        check_derivatives(ours, args)
        check_lanes(ours, args)
        if name != "mean":
            check_staging(ours, args)
    slope = ft.grad(lambda n: (Rotation.from_rotvec(point[0]) ** n).as_rotvec()[0])(0.3)
    np.testing.assert_allclose(slope, point[0][0], rtol=1e-12)


def test_rotations_are_sequences():
    rotations = Rotation.from_quat(FORMS["quat"])
    assert len(rotations) == 4 and not rotations.single and rotations.shape == (4,)
    assert [each.single for each in rotations] == [True] * 4
    one = rotations[0]
    for wrong in (lambda: len(one), lambda: one[0], lambda: iter(one)):
        with pytest.raises(TypeError, match="Single"):
            wrong()
    assert Rotation.identity().approx_equal(Rotation.identity())
    assert Rotation.identity(3).shape == (3,)
    expected = Reference.from_quat(FORMS["quat"]).approx_equal(
        Reference.from_quat(FORMS["quat"][0])
    )
    np.testing.assert_array_equal(rotations.approx_equal(one), expected)
    near = Rotation.from_rotvec([0.0, 0.0, 0.01])
    assert near.approx_equal(Rotation.identity(), atol=1.0, degrees=True)
    assert not near.approx_equal(Rotation.identity(), atol=0.1, degrees=True)


def test_what_is_no_rotation_is_refused():
    for name, wrong in {
        "from_quat": np.zeros(4),
        "from_rotvec": np.zeros(4),
        "from_matrix": -np.eye(3),
        "from_mrp": np.zeros(2),
    }.items():
        with pytest.raises(ValueError):
            ft.jvp(lambda x, n=name: getattr(Rotation, n)(x).as_quat(), (wrong,), (wrong,))
    scaled = lambda m: Rotation.from_matrix(m).as_matrix()
    stretched = FORMS["matrix"][0] @ np.diag([1.0, 2.0, 3.0])
    np.testing.assert_allclose(
        traced(scaled, stretched), Reference.from_matrix(stretched).as_matrix()
    )
    check_derivatives(scaled, (stretched,))
    with pytest.raises(TypeError):
        Rotation.identity() * 2
    with pytest.raises(ft.errors.MissingRuleError, match="axis="):
        Rotation.identity(3).mean(axis=0)


def test_methods_stand_in_for_those_of_scipy():
    plain, point = Reference.from_rotvec(VECTORS[0]), VECTORS[1]
    apply = transform.METHODS[Reference, "apply"]
    np.testing.assert_allclose(
        ft.jacrev(lambda v: apply(plain, v))(point), plain.as_matrix(), rtol=1e-12
    )
    expected = (plain * Reference.from_rotvec(point)).as_matrix()
    for product in (
        lambda v: (plain * Rotation.from_rotvec(v)).as_matrix(),
        lambda v: transform.METHODS[Reference, "__mul__"](
            plain, Rotation.from_rotvec(v)
        ).as_matrix(),
    ):
        np.testing.assert_allclose(traced(product, point), expected, rtol=1e-12)
    made = transform.METHODS[Reference, "from_rotvec"]
    np.testing.assert_allclose(
        ft.jacrev(lambda v: made(v).as_rotvec())(point), np.eye(3), atol=1e-12
    )
    for kind, name in transform.METHODS:
        assert callable(getattr(kind, name))


def test_slerp():
    times, turns = np.array([0.0, 1.0, 2.5, 3.0]), VECTORS[:4]
    reference = ReferenceSlerp(times, Reference.from_rotvec(turns))
    for queries in (np.array([0.0, 0.4, 1.0, 2.6, 3.0]), np.float64(1.7)):
        ours = lambda q, v, t: Slerp(t, Rotation.from_rotvec(v))(q).as_rotvec()
        got, expected = traced(ours, queries, turns, times), reference(queries).as_rotvec()
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-14)
        own = transform.METHODS[ReferenceSlerp, "__call__"]
        got = traced(lambda q, o=own: o(reference, q).as_rotvec(), queries)
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-14)
    inner = np.array([0.3, 1.7])
    check_derivatives(ours, (inner, turns, times))
    gradient = ft.grad(lambda q: np.sum(ours(q, turns, times) ** 2))
    lanes = np.array([[0.3, 1.7], [2.6, 0.2]])
    assert_trees_close(ft.vmap(gradient)(lanes), loop_vmap(gradient)(lanes), 1e-10)
    with pytest.raises(ValueError, match="range"):
        ft.jvp(lambda q: ours(q, turns, times), (np.float64(4.0),), (np.float64(1.0),))
    with pytest.raises(ValueError, match="increasing"):
        Slerp([1.0, 0.0], Rotation.from_rotvec(turns[:2]))
