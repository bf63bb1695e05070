"""functrans.random: known answers, the same numbers everywhere, distributions, derivatives, errors."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from scipy import special, stats

import functrans as ft
from functrans import errors, random
from functrans.ops.gamma import gamma_slope, log_factorial, polygamma
from functrans.ops.normal import normal_cdf, normal_quantile
from functrans.ops.random_bits import threefry
from tests.support.oracles import central_difference_jvp, loop_vmap

KEY = random.key(2024)
COV = np.array([[2.0, 0.6], [0.6, 1.0]])

# One call of every sampler: name -> f(key, *parameters), parameters.
SAMPLERS = {
    "split": (lambda k: random.split(k, 3), ()),
    "fold_in": (lambda k: random.fold_in(k, 7), ()),
    "bits": (lambda k: random.bits(k, (3, 2)), ()),
    "bits8": (lambda k: random.bits(k, (5,), np.uint8), ()),
    "uniform": (lambda k, low, high: random.uniform(k, (4,), np.float64, low, high), (-1.0, 2.5)),
    "uniform32": (lambda k: random.uniform(k, (4,), np.float32), ()),
    "normal": (lambda k: random.normal(k, (2, 3)), ()),
    "normal_scalar": (lambda k: random.normal(k), ()),
    "truncated_normal": (lambda k, a, b: random.truncated_normal(k, a, b, (5,)), (0.5, 2.0)),
    "exponential": (lambda k: random.exponential(k, (4,)), ()),
    "laplace": (lambda k: random.laplace(k, (4,)), ()),
    "logistic": (lambda k: random.logistic(k, (4,)), ()),
    "gumbel": (lambda k: random.gumbel(k, (4,)), ()),
    "cauchy": (lambda k: random.cauchy(k, (4,)), ()),
    "lognormal": (lambda k, s: random.lognormal(k, s, (4,)), (0.7,)),
    "pareto": (lambda k, b: random.pareto(k, b, (4,)), (2.5,)),
    "rayleigh": (lambda k, s: random.rayleigh(k, s, (4,)), (1.5,)),
    "weibull_min": (lambda k, s, c: random.weibull_min(k, s, c, (4,)), (1.5, 2.2)),
    "gamma": (lambda k, a: random.gamma(k, a, (4,)), (1.7,)),
    "loggamma": (lambda k, a: random.loggamma(k, a, (4,)), (0.02,)),
    "chisquare": (lambda k, df: random.chisquare(k, df, (4,)), (3.5,)),
    "beta": (lambda k, a, b: random.beta(k, a, b, (4,)), (0.6, 2.0)),
    "dirichlet": (lambda k, a: random.dirichlet(k, a, (2,)), (np.array([0.5, 1.0, 3.0]),)),
    "student_t": (lambda k, df: random.student_t(k, df, (4,)), (4.0,)),
    "multivariate": (lambda k, m: random.multivariate_normal(k, m, COV, (2,)), (np.ones(2),)),
    "bernoulli": (lambda k, p: random.bernoulli(k, p, (20,)), (0.3,)),
    "rademacher": (lambda k: random.rademacher(k, (9,)), ()),
    "randint": (lambda k: random.randint(k, (9,), -5, 17), ()),
    "categorical": (
        lambda k, x: random.categorical(k, x, shape=(6,)),
        (np.array([0.0, 1.0, 2.0]),),
    ),
    "permutation": (lambda k: random.permutation(k, 6), ()),
    "permutation_of": (lambda k, x: random.permutation(k, x, 1), (np.arange(12.0).reshape(3, 4),)),
    "independent": (
        lambda k, x: random.permutation(k, x, 1, independent=True),
        (np.arange(12.0).reshape(3, 4),),
    ),
    "choice": (lambda k, x: random.choice(k, x, (5,)), (np.array([2.0, 3.0, 5.0, 7.0]),)),
    "choice_p": (lambda k, p: random.choice(k, 3, (8,), p=p), (np.array([0.2, 0.3, 0.5]),)),
    "choice_top": (
        lambda k, p: random.choice(k, 3, (2,), replace=False, p=p),
        (np.array([0.2, 0.3, 0.5]),),
    ),
    "choice_without": (lambda k: random.choice(k, 9, (2, 3), replace=False), ()),
    "poisson": (lambda k, lam: random.poisson(k, lam, (5,)), (3.0,)),
    "poisson_large": (lambda k, lam: random.poisson(k, lam, (5,)), (300.0,)),
    "geometric": (lambda k, p: random.geometric(k, p, (5,)), (0.2,)),
}
every_sampler = pytest.mark.parametrize("name", SAMPLERS)


def identical(actual, expected):
    assert np.asarray(actual).dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(actual, expected)


# The generator.


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [  # published with Random123
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_gives_the_published_answers(counter, key, expected):
    x0, x1 = (np.array([word], np.uint32) for word in counter)
    threefry(*(np.array([word], np.uint32) for word in key), x0, x1)
    assert (int(x0[0]), int(x1[0])) == expected
    # The key and the counter of the primitive are these words.
    as_key = np.array(key, np.uint32)
    word = random.fold_in(as_key, (counter[0] << 32) | counter[1])
    assert tuple(map(int, word)) == expected


def test_large_arrays_are_made_of_the_same_words_as_small_ones():
    long = random.bits(KEY, (100_001,), np.uint64)
    identical(long[:10], random.bits(KEY, (10,), np.uint64))
    last = random.fold_in(KEY, 100_000).astype(np.uint64)
    assert long[-1] == last[0] << np.uint64(32) | last[1]
    many = ft.vmap(lambda k: random.bits(k, (3,)))(random.split(KEY, 40_000))
    identical(many[39_999], random.bits(random.split(KEY, 40_000)[39_999], (3,)))


def test_a_seed_has_64_bits():
    identical(random.key(2**40 + 5), np.array([256, 5], np.uint32))
    identical(random.key(-1), np.array([2**32 - 1] * 2, np.uint32))
    identical(ft.vmap(random.key)(np.arange(3)), np.stack([random.key(i) for i in range(3)]))
    identical(random.fold_in(KEY, 3), random.split(KEY, 5)[3])
    assert random.split(KEY, (2, 3)).shape == (2, 3, 2)


@pytest.mark.peers
def test_jax_agrees():
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        theirs = jax.random.PRNGKey(2024)
        identical(KEY, theirs)
        identical(random.split(KEY, 4), jax.random.split(theirs, 4))
        identical(random.fold_in(KEY, 9), jax.random.fold_in(theirs, 9))
        for dtype in (np.uint8, np.uint16, np.uint32, np.uint64):
            identical(random.bits(KEY, (3, 5), dtype), jax.random.bits(theirs, (3, 5), dtype))
        for name in ("uniform", "normal", "exponential", "laplace", "logistic", "cauchy", "gumbel"):
            np.testing.assert_allclose(
                getattr(random, name)(KEY, (200,)),
                getattr(jax.random, name)(theirs, (200,), np.float64),
                rtol=1e-9,
                err_msg=name,
            )


# The same numbers everywhere.


@every_sampler
def test_vmap_over_keys_gives_the_numbers_of_a_loop(name):
    sampler, parameters = SAMPLERS[name]
    keys = random.split(KEY, 3)
    one = lambda k: sampler(k, *parameters)
    identical(ft.vmap(one)(keys), loop_vmap(one)(keys))
    twice = random.split(KEY, (2, 3))
    identical(ft.vmap(ft.vmap(one))(twice), loop_vmap(loop_vmap(one))(twice))


@pytest.mark.parametrize("name", [name for name, (_, given) in SAMPLERS.items() if given])
def test_vmap_over_parameters_gives_the_numbers_of_a_loop(name):
    sampler, parameters = SAMPLERS[name]
    stacked = [np.stack([np.asarray(p), np.asarray(p), np.asarray(p) * 1.0]) for p in parameters]
    if not name.startswith("choice_"):
        stacked = [
            s * np.array([1.0, 1.1, 0.9]).reshape((3,) + (1,) * (s.ndim - 1)) for s in stacked
        ]
    both = lambda k, *p: sampler(k, *p)
    axes = (None, *[0] * len(stacked))
    identical(ft.vmap(both, axes)(KEY, *stacked), loop_vmap(both, axes)(KEY, *stacked))
    keys = random.split(KEY, 3)
    identical(ft.vmap(both)(keys, *stacked), loop_vmap(both)(keys, *stacked))


@every_sampler
def test_a_graph_gives_the_numbers_of_the_function(name):
    sampler, parameters = SAMPLERS[name]
    graph = ft.make_graph(sampler)(KEY, *parameters)
    graph.check()
    other = random.split(KEY)[1]
    identical(graph(other, *parameters), sampler(other, *parameters))
    constant = ft.make_graph(lambda x: x + sampler(KEY, *parameters))(np.int8(0))
    np.testing.assert_array_equal(constant(np.int8(0)), sampler(KEY, *parameters))


@every_sampler
def test_results_are_plain_and_do_not_warn(name):
    sampler, parameters = SAMPLERS[name]
    with np.errstate(all="raise"):
        result = sampler(KEY, *parameters)
    assert type(result) is np.ndarray or isinstance(result, np.generic)
    identical(sampler(KEY, *parameters), result)


_DIGEST = """
import hashlib, numpy as np
from functrans import random
key = random.key(2024)
parts = [random.normal(key, (100,)), random.bits(key, (100,)), random.gamma(key, 0.7, (50,))]
parts.append(random.permutation(key, 50))
print(hashlib.sha256(b"".join(np.round(part, 9).tobytes() for part in parts)).hexdigest())
"""


def test_another_process_gives_the_same_numbers():
    parts = [random.normal(KEY, (100,)), random.bits(KEY, (100,)), random.gamma(KEY, 0.7, (50,))]
    parts.append(random.permutation(KEY, 50))
    here = hashlib.sha256(b"".join(np.round(part, 9).tobytes() for part in parts)).hexdigest()
    run = subprocess.run(
        [sys.executable, "-c", _DIGEST], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == here


def test_importing_functrans_does_not_import_the_random_numbers():
    code = (
        "import sys, functrans; assert 'functrans.random' not in sys.modules; functrans.random.key"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_integer_of_fold_in_may_be_mapped_or_staged():
    by_lane = ft.vmap(lambda i: random.normal(random.fold_in(KEY, i), (2,)))(np.arange(4))
    identical(by_lane, np.stack([random.normal(random.fold_in(KEY, i), (2,)) for i in range(4)]))
    keys = random.split(KEY, 3)
    table = ft.vmap(lambda k: ft.vmap(lambda i: random.fold_in(k, i))(np.arange(4)))(keys)
    identical(table, np.stack([random.split(k, 4) for k in keys]))
    identical(ft.make_graph(random.fold_in)(KEY, 3)(KEY, 3), random.fold_in(KEY, 3))


# Distributions, by fixed seeds: a test that passes once passes always.

N = 40_000
CONTINUOUS = {
    "uniform": (lambda k: random.uniform(k, N, minval=-1.0, maxval=3.0), stats.uniform(-1, 4)),
    "uniform32": (lambda k: random.uniform(k, N, np.float32), stats.uniform()),
    "normal": (lambda k: random.normal(k, N), stats.norm()),
    "normal32": (lambda k: random.normal(k, N, np.float32), stats.norm()),
    "exponential": (lambda k: random.exponential(k, N), stats.expon()),
    "laplace": (lambda k: random.laplace(k, N), stats.laplace()),
    "logistic": (lambda k: random.logistic(k, N), stats.logistic()),
    "gumbel": (lambda k: random.gumbel(k, N), stats.gumbel_r()),
    "cauchy": (lambda k: random.cauchy(k, N), stats.cauchy()),
    "lognormal": (lambda k: random.lognormal(k, 0.5, N), stats.lognorm(0.5)),
    "pareto": (lambda k: random.pareto(k, 2.5, N), stats.pareto(2.5)),
    "rayleigh": (lambda k: random.rayleigh(k, 2.0, N), stats.rayleigh(scale=2)),
    "weibull": (lambda k: random.weibull_min(k, 2.0, 1.5, N), stats.weibull_min(1.5, scale=2)),
    "truncated": (lambda k: random.truncated_normal(k, -0.5, 2.0, N), stats.truncnorm(-0.5, 2.0)),
    "far_tail": (lambda k: random.truncated_normal(k, 9.0, 10.0, N), stats.truncnorm(9, 10)),
    "gamma0.05": (lambda k: random.gamma(k, 0.05, N), stats.gamma(0.05)),
    "gamma1": (lambda k: random.gamma(k, 1.0, N), stats.gamma(1.0)),
    "gamma7": (lambda k: random.gamma(k, 7.3, N), stats.gamma(7.3)),
    "gamma1e4": (lambda k: random.gamma(k, 1e4, N), stats.gamma(1e4)),
    "chisquare": (lambda k: random.chisquare(k, 3.0, N), stats.chi2(3)),
    "beta": (lambda k: random.beta(k, 0.4, 2.5, N), stats.beta(0.4, 2.5)),
    "student_t": (lambda k: random.student_t(k, 3.5, N), stats.t(3.5)),
    "dirichlet": (
        lambda k: random.dirichlet(k, np.array([0.5, 1.0, 2.0]), N)[:, 0],
        stats.beta(0.5, 3.0),
    ),
    "multivariate": (
        lambda k: random.multivariate_normal(k, np.ones(2), COV, N) @ np.array([1.0, -2.0]),
        stats.norm(-1, np.sqrt(np.array([1, -2]) @ COV @ np.array([1, -2]))),
    ),
}
KINDS = np.array([0.1, 0.2, 0.3, 0.4])
DISCRETE = {
    "bernoulli": (lambda k: random.bernoulli(k, 0.3, N), stats.bernoulli(0.3).pmf, 2),
    "rademacher": (lambda k: (random.rademacher(k, N) + 1) // 2, stats.bernoulli(0.5).pmf, 2),
    "randint": (lambda k: random.randint(k, N, -3, 8) + 3, lambda n: np.full(len(n), 1 / 11), 11),
    "randint_big": (  # where the remainder of one word by this number would show
        lambda k: random.randint(k, N, 0, 3 * 2**61) % 3,
        lambda n: np.full(len(n), 1 / 3),
        3,
    ),
    "categorical": (lambda k: random.categorical(k, np.log(KINDS), shape=N), lambda n: KINDS, 4),
    "choice": (lambda k: random.choice(k, 4, N, p=KINDS), lambda n: KINDS, 4),
    "poisson0.1": (lambda k: random.poisson(k, 0.1, N), stats.poisson(0.1).pmf, 4),
    "poisson9": (lambda k: random.poisson(k, 9.0, N), stats.poisson(9).pmf, 22),
    "poisson10": (lambda k: random.poisson(k, 10.0, N), stats.poisson(10).pmf, 24),
    "poisson200": (lambda k: random.poisson(k, 200.0, N), stats.poisson(200).pmf, 250),
    "geometric": (lambda k: random.geometric(k, 0.3, N), stats.geom(0.3).pmf, 20),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_samples_have_their_distribution(name):
    sampler, distribution = CONTINUOUS[name]
    for key in random.split(random.key(1), 2):
        assert stats.kstest(sampler(key), distribution.cdf).pvalue > 1e-3


def chi_square(counts, expected):
    enough = expected > 8
    counts = np.append(counts[enough], counts[~enough].sum())
    expected = np.append(expected[enough], expected[~enough].sum())
    keep = expected > 0
    return stats.chisquare(counts[keep], expected[keep] * counts.sum() / expected.sum()).pvalue


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_samples_have_their_distribution(name):
    sampler, pmf, length = DISCRETE[name]
    for key in random.split(random.key(2), 2):
        values = sampler(key)
        assert values.min() >= 0
        counts = np.bincount(np.minimum(values, length), minlength=length + 1).astype(float)
        probabilities = np.asarray(pmf(np.arange(length)), float)
        expected = N * np.append(probabilities, max(0.0, 1 - probabilities.sum()))
        assert chi_square(counts, expected) > 1e-3


def test_permutations_are_equally_likely():
    keys = random.split(random.key(3), 24_000)
    orders = ft.vmap(lambda k: random.permutation(k, 4))(keys)
    _, counts = np.unique(orders @ np.array([64, 16, 4, 1]), return_counts=True)
    assert len(counts) == 24 and stats.chisquare(counts).pvalue > 1e-3
    rows = random.permutation(keys[0], np.tile(np.arange(4), (24_000, 1)), 1, independent=True)
    _, counts = np.unique(rows @ np.array([64, 16, 4, 1]), return_counts=True)
    assert len(counts) == 24 and stats.chisquare(counts).pvalue > 1e-3


def test_choice_without_replacement_follows_its_probabilities():
    keys = random.split(random.key(4), 20_000)
    pairs = ft.vmap(lambda k: random.choice(k, 4, (2,), replace=False, p=KINDS))(keys)
    assert np.all(pairs[:, 0] != pairs[:, 1])
    expected = np.array(
        [[KINDS[i] * KINDS[j] / (1 - KINDS[i]) * (i != j) for j in range(4)] for i in range(4)]
    )
    counts = np.bincount(pairs @ np.array([4, 1]), minlength=16).astype(float)
    assert chi_square(counts, 20_000 * expected.reshape(-1)) > 1e-3


def test_streams_of_different_keys_are_independent():
    keys = random.split(random.key(5), 2_000)
    rows = ft.vmap(lambda k: random.normal(k, (20,)))(keys)  # one short stream for each key
    assert stats.kstest(rows.reshape(-1), "norm").pvalue > 1e-3
    correlation = np.corrcoef(rows, rowvar=False) - np.eye(20)
    assert np.abs(correlation).max() < 4.5 / np.sqrt(len(rows))
    first, second = random.split(random.key(6))
    child = random.split(first)[0]
    long = np.stack([random.normal(k, (50_000,)) for k in (random.key(6), first, second, child)])
    assert np.abs(np.corrcoef(long) - np.eye(4)).max() < 4.5 / np.sqrt(50_000)
    neighbors = np.stack([random.uniform(random.key(seed), (50_000,)) for seed in range(4)])
    assert np.abs(np.corrcoef(neighbors) - np.eye(4)).max() < 4.5 / np.sqrt(50_000)
    words = random.bits(random.key(7), (50_000,), np.uint64)
    share = [np.mean(words >> np.uint64(b) & np.uint64(1)) for b in range(64)]
    assert np.abs(np.array(share) - 0.5).max() < 4.5 * 0.5 / np.sqrt(50_000)


# Intervals, dtypes, shapes.


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_uniform_stays_in_its_interval_with_every_bit_of_the_mantissa(dtype):
    bits = np.finfo(dtype).nmant + 1
    u = random.uniform(KEY, (60_000,), dtype)
    assert u.dtype == dtype and u.min() >= 0 and u.max() < 1
    steps = u.astype(np.float64) * 2.0**bits
    assert np.all(steps == np.floor(steps)) and np.any(steps % 2 == 1)
    # Above 8 the dtype is coarse: rounding would reach 9 in half of the last steps.
    wide = random.uniform(KEY, (60_000,), dtype, 8.0, 9.0)
    assert wide.min() >= 8 and wide.max() < 9
    assert random.uniform(KEY, (3,), dtype, 2.0, 2.0).tolist() == [2.0] * 3


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", ["normal", "exponential", "laplace", "gumbel", "gamma", "beta"])
def test_dtypes_and_scalars_and_empty_shapes(name, dtype):
    parameters = {"gamma": (2.0,), "beta": (2.0, 3.0)}.get(name, ())
    sampler = getattr(random, name)
    scalar = sampler(KEY, *parameters, dtype=dtype)
    assert type(scalar) is dtype
    assert sampler(KEY, *parameters, (0, 3), dtype).shape == (0, 3)
    assert sampler(KEY, *parameters, 4, dtype).dtype == dtype


def test_integers_of_every_type_reach_both_ends():
    for dtype in (np.int8, np.uint8, np.int64, np.uint64):
        limits = np.iinfo(dtype)
        low, high = int(limits.min), int(limits.max)
        ends = random.randint(KEY, (50,), high - 1, high, dtype)
        assert ends.dtype == dtype and set(ends.tolist()) == {high - 1}
        wide = random.randint(KEY, (500,), low, high, dtype).astype(float)
        assert wide.min() < low + 0.05 * (high - low) and wide.max() > high - 0.05 * (high - low)
    pairs = random.randint(KEY, (500, 2), np.array([0, 10]), np.array([2, 12]))
    assert set(pairs[:, 0].tolist()) == {0, 1} and set(pairs[:, 1].tolist()) == {10, 11}
    assert set(np.unique(random.bernoulli(KEY, np.array([0.0, 1.0]), (500, 2)))) == {False, True}


def test_parameters_give_the_shape_if_none_is_asked_for():
    assert random.uniform(KEY, minval=np.zeros(3), maxval=np.ones((2, 1))).shape == (2, 3)
    assert random.gamma(KEY, np.ones((2, 3))).shape == (2, 3)
    assert random.categorical(KEY, np.zeros((2, 5, 3)), axis=1).shape == (2, 3)
    assert random.categorical(KEY, np.zeros((5, 3)), axis=0, shape=(7, 3)).shape == (7, 3)
    assert random.dirichlet(KEY, np.ones((2, 3))).shape == (2, 3)
    assert random.choice(KEY, np.zeros((4, 5)), (2, 3), axis=1).shape == (4, 2, 3)
    assert len(set(random.uniform(KEY, minval=np.zeros(50)).tolist())) == 50


# Derivatives.

PATHWISE = {
    "uniform": (lambda a, b: random.uniform(KEY, (5,), minval=a, maxval=b), (-1.0, 2.0)),
    "normal": (lambda m, s: m + s * random.normal(KEY, (5,)), (0.3, 1.2)),
    "truncated": (lambda a, b: random.truncated_normal(KEY, a, b, (5,)), (-0.4, 1.5)),
    "upper_tail": (lambda a, b: random.truncated_normal(KEY, a, b, (5,)), (2.0, 3.5)),
    "exponential": (lambda s: s * random.exponential(KEY, (5,)), (2.0,)),
    "lognormal": (lambda s: random.lognormal(KEY, s, (5,)), (0.7,)),
    "pareto": (lambda b: random.pareto(KEY, b, (5,)), (2.5,)),
    "weibull": (lambda s, c: random.weibull_min(KEY, s, c, (5,)), (1.5, 2.0)),
    "rayleigh": (lambda s: random.rayleigh(KEY, s, (5,)), (1.5,)),
    "multivariate": (
        lambda m: random.multivariate_normal(KEY, m * np.array([1.0, 2.0]), COV, (5,))[:, 1],
        (0.5,),
    ),
}


@pytest.mark.parametrize("name", PATHWISE)
def test_derivatives_by_parameters_are_those_of_the_numbers(name):
    f, parameters = PATHWISE[name]
    tangents = tuple(0.5 + 0.3 * k for k in range(len(parameters)))
    _, pushed = ft.jvp(f, parameters, tangents)
    np.testing.assert_allclose(pushed, central_difference_jvp(f, parameters, tangents), rtol=1e-7)
    _, pull = ft.vjp(f, *parameters)
    weights = np.arange(1.0, 6.0)
    np.testing.assert_allclose(np.dot(pull(weights), tangents), weights @ pushed)
    slope = lambda *p: ft.jvp(f, p, tangents)[1]
    _, second = ft.jvp(slope, parameters, tangents)
    np.testing.assert_allclose(
        second, central_difference_jvp(slope, parameters, tangents), rtol=1e-6, atol=1e-8
    )


def quantile_path(a, x):
    """log x as a function of the shape, at constant probability; by SciPy."""
    p, q = special.gammainc(a, x), special.gammaincc(a, x)
    if p < 0.5:
        return lambda s: np.log(special.gammaincinv(s, p))
    return lambda s: np.log(special.gammainccinv(s, q))


@pytest.mark.parametrize("a", [0.02, 0.3, 0.9, 1.0, 2.5, 30.0, 1e3, 1e5])
def test_a_gamma_sample_moves_along_its_quantile(a):
    logs = random.loggamma(KEY, a, (12,))
    slopes = ft.jvp(lambda s: random.loggamma(KEY, s, (12,)), (a,), (1.0,))[1]
    second = ft.jvp(
        lambda s: ft.jvp(lambda r: random.loggamma(KEY, r, (12,)), (s,), (1.0,))[1], (a,), (1.0,)
    )[1]
    for log_x, slope, bend in zip(logs, slopes, second, strict=True):
        if log_x < -600:  # SciPy works with x itself
            continue
        path = quantile_path(a, np.exp(log_x))
        unit = lambda t, path=path: path(a * (1 + t))  # a relative step
        expected = central_difference_jvp(unit, (0.0,), (1.0,), step=1e-2) / a
        np.testing.assert_allclose(slope, expected, rtol=2e-6)
        h = 1e-2 * a
        curve = (path(a + h) - 2 * path(a) + path(a - h)) / h**2
        np.testing.assert_allclose(bend, curve, rtol=2e-3)
        # The formula itself: -(dF/da) / p, with dF/da by differences of SciPy's F.
        x = np.exp(log_x)
        by_shape = central_difference_jvp(
            lambda t, x=x: special.gammainc(a * (1 + t), x),
            (0.0,),
            (1.0,),
            step=min(1e-2, 0.1 / np.sqrt(a)),  # the width of the distribution
        )
        implicit = -by_shape / a / stats.gamma(a).pdf(x) / x
        np.testing.assert_allclose(slope, implicit, rtol=1e-5)


def test_the_slope_of_gamma_samples_has_derivatives_of_any_order():
    a = np.array([0.05, 0.6, 1.0, 4.0, 40.0, 3e3])
    for probability in (1e-4, 0.1, 0.5, 0.9, 1 - 1e-4):
        log_x = np.log(special.gammaincinv(a, probability))
        log_x = np.maximum(log_x, -100.0)
        by_a = lambda s, log_x=log_x: gamma_slope(s, log_x)
        by_log_x = lambda y: gamma_slope(a, y)
        twice_a = lambda s, by_a=by_a: ft.jvp(by_a, (s,), (a * 0.1,))[1]
        twice_y = lambda y, f=by_log_x: ft.jvp(f, (y,), (np.ones(6),))[1]
        for f, point, tangent in (
            (by_a, a, a * 0.1),
            (by_log_x, log_x, np.ones(6)),
            (twice_a, a, a * 0.1),
            (twice_y, log_x, np.ones(6)),
        ):
            expected = central_difference_jvp(f, (point,), (tangent,), step=2e-3)
            scale = np.abs(expected) + np.abs(f(point))
            error = np.abs(ft.jvp(f, (point,), (tangent,))[1] - expected)
            assert np.all(error < 1e-6 * scale)


def test_gradients_of_gamma_means_in_both_modes_and_under_vmap():
    mean = lambda a: np.mean(random.gamma(KEY, a, (4000,)))
    for a in (0.5, 3.0):
        np.testing.assert_allclose(ft.grad(mean)(a), 1.0, atol=0.05)
        np.testing.assert_allclose(ft.grad(mean)(a), ft.jvp(mean, (a,), (1.0,))[1])
    shapes = np.array([0.3, 1.0, 8.0])
    lanes = ft.vmap(ft.grad(lambda a: random.gamma(KEY, a)))(shapes)
    np.testing.assert_allclose(lanes, [ft.grad(lambda a: random.gamma(KEY, a))(a) for a in shapes])
    graph = ft.make_graph(ft.grad(lambda a: np.sum(random.gamma(KEY, a))))(shapes)
    np.testing.assert_allclose(
        graph(shapes), ft.grad(lambda a: np.sum(random.gamma(KEY, a)))(shapes)
    )


def test_gradients_through_beta_dirichlet_and_t_are_those_of_their_means():
    key = random.key(8)
    by_a, by_b = ft.grad(lambda a, b: np.mean(random.beta(key, a, b, (20_000,))), (0, 1))(1.5, 2.5)
    np.testing.assert_allclose([by_a, by_b], [2.5 / 16, -1.5 / 16], atol=3e-3)
    alpha = np.array([0.5, 1.0, 2.5])
    jacobian = ft.jacrev(lambda a: np.mean(random.dirichlet(key, a, (8_000,)), axis=0))(alpha)
    np.testing.assert_allclose(jacobian, np.eye(3) / 4 - alpha[:, None] / 16, atol=1e-2)
    np.testing.assert_allclose(jacobian.sum(axis=0), 0, atol=1e-12)
    spread = lambda df: np.mean(np.abs(random.student_t(key, df, (40_000,))))
    exact = lambda df: stats.t(df).expect(np.abs)
    slope = central_difference_jvp(exact, (6.0,), (1.0,), step=0.05)
    np.testing.assert_allclose(ft.grad(spread)(6.0), slope, atol=5e-3)
    tiny = ft.grad(lambda a: random.beta(key, a, 1e-4))(1e-4)  # both gamma numbers underflow
    assert np.isfinite(tiny)


def test_what_is_discrete_has_no_derivative():
    assert ft.grad(lambda p: p * random.bernoulli(KEY, p))(0.99) == 1.0
    assert ft.grad(lambda lam: lam + random.poisson(KEY, lam))(3.0) == 1.0
    picked = ft.grad(lambda x: np.sum(random.permutation(KEY, x) * np.arange(3.0)))(np.ones(3))
    np.testing.assert_array_equal(picked[random.permutation(KEY, 3)], np.arange(3.0))


def test_special_functions_against_scipy():
    p = np.concatenate([10.0 ** -np.arange(1, 300, 0.7), 1 - 10.0 ** -np.arange(1, 15, 0.3)])
    np.testing.assert_allclose(normal_quantile(p), special.ndtri(p), rtol=3e-15)
    assert normal_quantile(0.0) == -np.inf and normal_quantile(1.0) == np.inf
    x = np.linspace(-37, 9, 200)
    np.testing.assert_allclose(normal_cdf(x), special.ndtr(x), rtol=1e-12)
    a = 10.0 ** np.linspace(-8, 8, 100)
    for order in range(5):
        np.testing.assert_allclose(polygamma(order)(a), special.polygamma(order, a), rtol=1e-13)
    k = np.arange(400.0)
    np.testing.assert_allclose(log_factorial(k), special.gammaln(k + 1), rtol=1e-13, atol=1e-13)


# Errors.

BAD_CALLS = {
    "seed as key": (lambda: random.normal(42), errors.InputTypeError, r"random\.key\(seed\)"),
    "stack of keys": (
        lambda: random.normal(random.split(KEY, 3)),
        errors.InputTypeError,
        r"uint32\[3,2\].*vmap",
    ),
    "dtype of key": (lambda: random.split(KEY.astype(int)), errors.InputTypeError, "int64"),
    "seed": (lambda: random.key(1.5), errors.InputTypeError, "integer"),
    "long seed": (lambda: random.key(2**64), errors.InputTypeError, "64 bits"),
    "shape": (lambda: random.normal(KEY, (2, -1)), errors.OptionError, "non-negative"),
    "float shape": (lambda: random.normal(KEY, 2.5), errors.OptionError, "tuple of integers"),
    "dtype": (lambda: random.normal(KEY, (), int), errors.OptionError, "float64"),
    "complex": (lambda: random.uniform(KEY, maxval=1j), errors.InputTypeError, "maxval"),
    "bits": (lambda: random.bits(KEY, (), int), errors.OptionError, "unsigned"),
    "interval": (lambda: random.uniform(KEY, minval=1, maxval=0), errors.OptionError, "maxval"),
    "broadcast": (
        lambda: random.uniform(KEY, (2,), maxval=np.ones(3)),
        errors.OptionError,
        "broadcast",
    ),
    "p": (lambda: random.bernoulli(KEY, 1.5), errors.OptionError, "between 0 and 1"),
    "traced p": (lambda: ft.grad(lambda p: random.bernoulli(KEY, p) * p)(-0.1), ValueError, "p "),
    "gamma": (lambda: random.gamma(KEY, -1.0), errors.OptionError, "a must be 0 or more"),
    "poisson": (lambda: random.poisson(KEY, -1.0), errors.OptionError, "lam"),
    "randint": (lambda: random.randint(KEY, (), 3, 3), errors.OptionError, "more than 0"),
    "range": (lambda: random.randint(KEY, (), 0, 300, np.int8), errors.OptionError, "at most 128"),
    "float bound": (lambda: random.randint(KEY, (), 0, 3.5), errors.InputTypeError, "integers"),
    "sum of p": (lambda: random.choice(KEY, 2, p=[0.5, 0.6]), errors.OptionError, "sum 1"),
    "length of p": (lambda: random.choice(KEY, 3, p=[0.5, 0.5]), errors.OptionError, r"\(2,\)"),
    "too many": (lambda: random.choice(KEY, 3, (4,), False), errors.OptionError, "replace=True"),
    "too few": (
        lambda: random.choice(KEY, 3, (2,), False, [1.0, 0.0, 0.0]),
        errors.OptionError,
        "without replacement",
    ),
    "no category": (lambda: random.categorical(KEY, 1.0), errors.OptionError, "category"),
    "alpha": (lambda: random.dirichlet(KEY, 1.0), errors.OptionError, "vector"),
    "covariance": (
        lambda: random.multivariate_normal(KEY, np.ones(3), COV),
        errors.OptionError,
        r"\(\.\.\., n, n\)",
    ),
    "length": (lambda: random.permutation(KEY, 2.5), errors.InputTypeError, "integer"),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_errors_say_what_to_do(name):
    call, kind, message = BAD_CALLS[name]
    with pytest.raises(kind, match=message) as caught:
        call()
    assert "test_random.py" in str(caught.value)


def test_a_generator_of_numpy_refuses_traced_parameters():
    rng = np.random.default_rng(0)
    for f in (rng.normal, rng.gamma, np.random.normal):
        with pytest.raises(errors.ArrayConversionError):
            ft.grad(f)(1.0)
