"""functrans.scipy.signal: all names against SciPy, finite differences, loops over lanes, and graphs."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.signal

import functrans as ft
from functrans.scipy import fft as scipy_fft
from functrans.scipy import linalg, signal
from tests.support.oracles import assert_trees_close, central_difference_jvp
from tests.support.scipy_cases import check_derivatives, check_lanes, check_staging

RNG = np.random.default_rng(7)


def normal(*shape):
    return RNG.normal(size=shape)


X = normal(20)
B, A = np.array([0.4, 0.3, -0.2]), np.array([1.3, -0.4, 0.2, 0.1])
SOS = scipy.signal.butter(4, 0.3, output="sos")
SHORT = normal(6)


def case(call, *args):
    """A function of a module and arrays: the module is ours, or SciPy's."""
    return lambda *a: call(signal, *a), lambda *a: call(scipy.signal, *a), args


CASES = {
    **{
        f"{name} {mode} {n}": case(
            lambda m, x, y, f=name, o=mode: getattr(m, f)(x, y, o), SHORT, normal(n)
        )
        for name in ("convolve", "correlate", "fftconvolve", "oaconvolve")
        for mode in ("full", "same", "valid")
        for n in (3, 4, 9)
    },
    **{
        f"{name} {mode} plane": case(
            lambda m, x, y, f=name, o=mode: getattr(m, f)(x, y, o), normal(4, 5), normal(2, 3)
        )
        for name in ("convolve", "correlate", "fftconvolve", "convolve2d", "correlate2d")
        for mode in ("full", "same", "valid")
    },
    "convolve cube": case(lambda m, x, y: m.convolve(x, y), normal(2, 3, 2), normal(2, 2, 1)),
    "convolve small first": case(
        lambda m, x, y: m.convolve(x, y, "valid"), normal(2, 3), normal(4, 5)
    ),
    "correlate2d small first": case(
        lambda m, x, y: m.correlate2d(x, y, "valid"), normal(2, 3), normal(4, 5)
    ),
    "fftconvolve axes": case(
        lambda m, x, y: m.fftconvolve(x, y, axes=0), normal(4, 3), normal(2, 3)
    ),
    "oaconvolve axes": case(
        lambda m, x, y: m.oaconvolve(x, y, "same", axes=1), normal(2, 5), normal(1, 3)
    ),
    **{
        f"{name} {mode} {boundary}": case(
            lambda m, x, y, f=name, o=mode, b=boundary: getattr(m, f)(x, y, o, b),
            *(normal(4, 5), normal(3, 2)),
        )
        for name in ("convolve2d", "correlate2d")
        for mode in ("full", "same", "valid")
        for boundary in ("wrap", "symm")
    },
    "convolve2d fill": case(
        lambda m, x, y: m.convolve2d(x, y, "same", fillvalue=1.5), normal(3, 4), normal(2, 3)
    ),
    "deconvolve": case(lambda m, x, d: m.deconvolve(x, d), normal(6), np.array([2.0, 1.0, 0.5])),
    "deconvolve short": case(lambda m, x: m.deconvolve(x, np.ones(5))[1], normal(3)),
    "lfilter": case(lambda m, b, a, x: m.lfilter(b, a, x), B, A, SHORT),
    "lfilter taps": case(lambda m, b, x: m.lfilter(b, 1.0, x), B, SHORT),
    "lfilter poles": case(lambda m, a, x: m.lfilter([1.0], a, x), A, SHORT),
    "lfilter axis": case(lambda m, b, a, x: m.lfilter(b, a, x, axis=0), B, A, normal(5, 2)),
    "lfilter zi": case(lambda m, b, a, x, z: m.lfilter(b, a, x, zi=z), B, A, SHORT, normal(3)),
    "lfilter zi short": case(
        lambda m, b, a, x, z: m.lfilter(b, a, x, zi=z), B, A, normal(2), normal(3)
    ),
    "lfilter zi long taps": case(
        lambda m, b, a, x, z: m.lfilter(b, a, x, zi=z), A, B[:2], SHORT, normal(3)
    ),
    "lfilter zi axis": case(
        lambda m, b, a, x, z: m.lfilter(b, a, x, 0, z), B, A, normal(5, 2), normal(3, 2)
    ),
    "sosfilt sections": case(lambda m, x: m.sosfilt(SOS, x, axis=0), normal(7, 2)),
    "sosfilt zi": case(lambda m, x, z: m.sosfilt(SOS, x, zi=z), normal(2, 7), normal(2, 2, 2)),
    "lfilter_zi": case(lambda m, b, a: m.lfilter_zi(b, a), B, A),
    "lfilter_zi long taps": case(lambda m, b, a: m.lfilter_zi(b, a), A, B),
    **{
        f"filtfilt {kind}": case(lambda m, b, a, x, o=kind: m.filtfilt(b, a, x, padtype=o), B, A, X)
        for kind in ("odd", "even", "constant", None)
    },
    "filtfilt axis": case(
        lambda m, x: m.filtfilt([0.5, 0.5], [1.0, 0.2], x, axis=0, padlen=3), normal(6, 2)
    ),
    "sosfiltfilt": case(lambda m, x: m.sosfiltfilt(SOS, x), normal(40)),
    "sosfiltfilt padlen": case(lambda m, x: m.sosfiltfilt(SOS[:1], x, padlen=4), X),
    **{
        f"savgol_filter {mode} {size} {deriv}": case(
            lambda m, x, d, o=mode, n=size, k=deriv: m.savgol_filter(
                x, n, 2, deriv=k, delta=d, mode=o, cval=0.7
            ),
            *(normal(9), 0.6),
        )
        for mode in ("interp", "mirror", "constant", "nearest", "wrap")
        for size in (5, 4)
        for deriv in (0, 1)
    },
    "savgol_filter axis": case(lambda m, x: m.savgol_filter(x, 3, 1, axis=0), normal(5, 2)),
    "savgol_coeffs": case(lambda m, d: m.savgol_coeffs(5, 2, deriv=2, delta=d), 0.7),
    "detrend": case(lambda m, x: m.detrend(x), normal(7, 2).T),
    "detrend bp": case(lambda m, x: m.detrend(x, axis=0, bp=[3, 5]), normal(8, 2)),
    "detrend constant": case(lambda m, x: m.detrend(x, type="constant"), SHORT),
    "medfilt": case(lambda m, x: m.medfilt(x, 5), normal(9)),
    "medfilt plane": case(lambda m, x: m.medfilt(x, [3, 1]), normal(4, 3)),
    "medfilt2d": case(lambda m, x: m.medfilt2d(x, [3, 5]), normal(4, 6)),
    "zpk2tf": case(
        lambda m, z, p, k: m.zpk2tf(z, p, k), np.array([0.4, -0.3]), np.array([0.6, 0.2, -0.5]), 1.7
    ),
    "tf2zpk": case(lambda m, a, c: m.tf2zpk([2.0, c], a)[1:], np.array([2.0, 1.0, -0.6]), 0.7),
    "wiener": case(lambda m, x: m.wiener(x, 3), normal(9)),
    "wiener noise": case(lambda m, x, n: m.wiener(x, 3, n), normal(4, 5), 0.4),
    "upfirdn": case(lambda m, h, x: m.upfirdn(h, x, 3, 2), normal(4), SHORT),
    "upfirdn axis": case(lambda m, h, x: m.upfirdn(h, x, 1, 2, axis=0), normal(4), normal(5, 2)),
    **{
        f"resample {n} {m}": case(lambda s, x, m=m: s.resample(x, m), normal(n))
        for n in (6, 7)
        for m in (4, 5, 6, 7, 9, 10)
    },
    "resample axis": case(lambda m, x: m.resample(x, 4, axis=1, window="hamming"), normal(2, 6)),
    "resample times": case(lambda m, x, t: m.resample(x, 4, t), normal(6), np.arange(6.0) / 3),
    **{
        f"resample_poly {up} {down}": case(
            lambda m, x, u=up, d=down: m.resample_poly(x, u, d), normal(13)
        )
        for up, down in ((2, 3), (3, 2), (1, 4), (4, 1), (2, 4))
    },
    "resample_poly mean": case(
        lambda m, x: m.resample_poly(x, 3, 2, axis=1, padtype="mean"), normal(2, 9)
    ),
    "resample_poly window": case(
        lambda m, x, h: m.resample_poly(x, 3, 2, window=h), normal(9), normal(7)
    ),
    "decimate": case(lambda m, x: m.decimate(x, 2), normal(40)),
    "decimate fir": case(lambda m, x: m.decimate(x, 2, ftype="fir"), normal(30)),
    "decimate forward": case(lambda m, x: m.decimate(x, 3, zero_phase=False), normal(2, 20)),
    "decimate fir forward": case(
        lambda m, x: m.decimate(x, 3, 8, "fir", zero_phase=False), normal(20)
    ),
    "periodogram": case(lambda m, x, fs: m.periodogram(x, fs), normal(9), 2.5),
    "periodogram nfft": case(
        lambda m, x: m.periodogram(x, nfft=6, window="hann", scaling="spectrum", axis=0)[1],
        normal(8, 2),
    ),
    "periodogram long": case(
        lambda m, x: m.periodogram(x, nfft=12, detrend="linear")[1], normal(8)
    ),
    **{
        f"welch {average} {detrend}": case(
            lambda m, x, fs, a=average, d=detrend: m.welch(
                x, fs, nperseg=6, average=a, detrend=d, nfft=9
            ),
            *(X, 2.5),
        )
        for average in ("mean", "median")
        for detrend in ("constant", "linear", False)
    },
    "welch window": case(
        lambda m, x, w: m.welch(x, window=w)[1], normal(2, 20), 1 + normal(6) ** 2
    ),
    "welch short": case(lambda m, x: m.welch(x, return_onesided=False, nperseg=9)[1], normal(9)),
    "coherence": case(lambda m, x, y: m.coherence(x, y, nperseg=6), X, normal(20)),
    "spectrogram": case(lambda m, x, fs: m.spectrogram(x, fs, nperseg=8), X, 2.0),
    "spectrogram magnitude": case(
        lambda m, x: m.spectrogram(x, nperseg=8, mode="magnitude", axis=0)[2], normal(20, 2)
    ),
    "sawtooth": case(lambda m, t, w: m.sawtooth(t, w), X + 0.1, 0.4),
    "square": case(lambda m, t: m.square(t, 0.3), X),
    **{
        f"chirp {method} {vertex}": case(
            lambda m, t, a, b, c, p, o=method, v=vertex: m.chirp(t, a, b, c, o, p, v),
            *(np.linspace(0, 1, 5), 1.3, 2.0, 3.1, 20.0),
        )
        for method, vertex in (
            *(("linear", True), ("quadratic", True), ("quadratic", False)),
            *(("logarithmic", True), ("hyperbolic", True)),
        )
    },
    "chirp constant": case(lambda m, t: m.chirp(t, 2.0, 1.0, 2.0, "log"), np.linspace(0, 1, 5)),
    "gausspulse": case(
        lambda m, t, f, w, r: m.gausspulse(t, f, w, r, retquad=True, retenv=True),
        *(X / 10, 3.0, 0.6, -5.0),
    ),
    "sweep_poly": case(lambda m, t, p: m.sweep_poly(t, p, 10), X, np.array([0.3, 0.2, 1.0])),
    "sos2tf": case(lambda m, s: m.sos2tf(s), np.array(SOS)),
    "bilinear": case(lambda m, b, a, fs: m.bilinear(b, a, fs), np.array([1.0, 2.0]), A, 1.4),
    **{
        f"windows {name} {sym}": case(
            lambda m, *p, f=name, s=sym: getattr(m.windows, f)(7, *p, sym=s), *parameters
        )
        for name, parameters in (
            *(("gaussian", (1.7,)), ("general_gaussian", (1.3, 2.1)), ("kaiser", (2.5,))),
            *(("tukey", (0.6,)), ("general_hamming", (0.6,))),
            ("general_cosine", (np.array([0.5, 0.3, 0.1]),)),
        )
        for sym in (True, False)
    },
    "windows exponential": case(lambda m, t: m.windows.exponential(7, tau=t), 1.4),
    "windows exponential center": case(
        lambda m, c, t: m.windows.exponential(7, c, t, False), 2.2, 1.4
    ),
    "get_window": case(lambda m, s: m.get_window(("gaussian", s), 7), 1.5),
    "get_window kaiser": case(lambda m, b: m.get_window(b, 7, False), 1.5),
    "get_window tukey": case(lambda m, a: m.get_window(("tukey", a), 7), 0.5),
}
for_each = pytest.mark.parametrize("function,reference,args", CASES.values(), ids=CASES)


@for_each
def test_values_are_those_of_scipy(function, reference, args):
    expected = reference(*args)
    assert_trees_close(function(*args), expected, 1e-13, 1e-13)
    traced = ft.jvp(function, tuple(args), tuple(np.zeros_like(arg) for arg in args))[0]
    assert_trees_close(traced, expected, 1e-9, 1e-11, dtypes=True)


@for_each
def test_derivatives(function, reference, args):
    check_derivatives(function, tuple(args), rtol=3e-6, atol=1e-7)


@for_each
def test_lanes(function, reference, args):
    check_lanes(function, tuple(args), rtol=1e-8, atol=1e-9)


NEEDS_VALUES = (
    "tf2zpk",
    "chirp log",
    "chirp hyp",
    "chirp constant",
    "windows tukey",
    "get_window tukey",
    "bilinear",
)


@pytest.mark.parametrize("name", [n for n in CASES if not n.startswith(NEEDS_VALUES)])
def test_graphs(name):
    function, _, args = CASES[name]
    check_staging(function, tuple(map(np.asarray, args)))


# A pole at 1 may not be given: SciPy checks that a0 of each section is 1.

SECTIONS = np.concatenate([np.array(SOS)[:, :3], np.array(SOS)[:, 4:]], axis=1)


def with_ones(sections):
    one = np.ones((2, 1))
    return np.concatenate([sections[:, :3], one, sections[:, 3:]], axis=1)


@pytest.mark.parametrize("name", ["sosfilt", "sosfiltfilt", "sosfilt_zi", "freqz_sos", "sosfreqz"])
def test_sections_may_be_traced(name):
    x = normal(30)

    def call(m, sections, x):
        sos = with_ones(sections)
        if name == "sosfilt_zi":
            return m.sosfilt_zi(sos)
        if "freq" in name:
            w, h = getattr(m, name)(sos, worN=5, fs=3.0)
            return w, h.real, h.imag
        return getattr(m, name)(sos, x)

    ours = lambda s, x: call(signal, s, x)
    found = ft.jvp(ours, (SECTIONS, x), (SECTIONS, x))[0]
    assert_trees_close(found, call(scipy.signal, SECTIONS, x), 1e-9, 1e-11)
    if name in ("sosfilt_zi", "freqz_sos", "sosfreqz"):
        check_derivatives(lambda s: ours(s, x), (SECTIONS,), rtol=1e-5, atol=1e-6)
        check_lanes(lambda s: ours(s, x), (SECTIONS,))
    else:
        check_derivatives(ours, (SECTIONS, x), rtol=1e-5, atol=1e-6)
        check_lanes(ours, (SECTIONS, x))


COMPLEX = {
    "hilbert": case(lambda m, x: m.hilbert(x), SHORT),
    "hilbert odd": case(lambda m, x: m.hilbert(x, 7, axis=0), normal(5, 2)),
    "freqz": case(lambda m, b, a: m.freqz(b, a, 6)[1], B, A),
    "freqz whole": case(lambda m, b, a: m.freqz(b, a, 6, whole=True)[1], B, A),
    "freqz nyquist": case(lambda m, b: m.freqz(b, worN=5, include_nyquist=True)[1], B),
    "freqz at": case(lambda m, b, a, w: m.freqz(b, a, w, fs=3.0)[1], B, A, np.array([0.1, 0.7])),
    "freqz_zpk": case(
        lambda m, z, p, k: m.freqz_zpk(z, p, k, 5)[1], np.array([0.3, -0.2]), np.array([0.6]), 1.7
    ),
    "freqs": case(lambda m, b, a, w: m.freqs(b, a, w)[1], B, A, np.array([0.1, 0.7])),
    "csd": case(lambda m, x, y: m.csd(x, y, nperseg=6)[1], X, normal(20)),
    "csd median": case(lambda m, x, y: m.csd(x, y, nperseg=6, average="median")[1], X, normal(20)),
    "csd uneven": case(lambda m, x, y: m.csd(x, y, nperseg=6)[1], X, normal(15)),
    "stft": case(lambda m, x: m.stft(x, nperseg=6)[2], X),
    "stft odd": case(
        lambda m, x: m.stft(x, 2.0, nperseg=7, noverlap=2, boundary="odd", axis=0)[2], normal(20, 2)
    ),
    "stft even": case(
        lambda m, x: m.stft(x, nperseg=6, boundary="even", padded=False, scaling="psd")[2], X
    ),
    "stft constant": case(lambda m, x: m.stft(x, nperseg=6, boundary="constant", nfft=8)[2], X),
    "stft none": case(lambda m, x: m.stft(x, nperseg=6, boundary=None)[2], X),
    "spectrogram complex": case(lambda m, x: m.spectrogram(x, nperseg=8, mode="complex")[2], X),
    "chirp complex": case(lambda m, t: m.chirp(t, 1.0, 2.0, 3.0, complex=True), X),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_results(name):
    function, reference, args = COMPLEX[name]
    zeros = tuple(np.zeros_like(arg) for arg in args)
    found = ft.jvp(function, args, zeros)[0]
    assert_trees_close(found, reference(*args), 1e-9, 1e-11, dtypes=True)
    parts = lambda *a: (function(*a).real, function(*a).imag)
    check_derivatives(parts, args, rtol=3e-6, atol=1e-7)
    check_lanes(parts, args)
    check_staging(parts, tuple(map(np.asarray, args)))


def test_the_other_results():
    for f in (
        lambda m, x: m.freqz(B * x[0], A, 6, fs=4.0)[0],
        lambda m, x: m.stft(x, 2.0, nperseg=6)[:2],
        lambda m, x: m.spectrogram(x, 2.0, nperseg=6, noverlap=2)[:2],
        lambda m, x: m.csd(x, X, 2.0, nperseg=6)[0],
    ):
        found = ft.jvp(lambda x, f=f: f(signal, x), (X,), (X,))[0]
        assert_trees_close(found, f(scipy.signal, X), 1e-12)


def test_every_name_has_a_case():
    tested = {name.split()[0] for name in [*CASES, *COMPLEX]}
    assert set(signal.__all__) == tested | {"sosfilt_zi", "freqz_sos", "sosfreqz"}
    named = {name.split()[1] for name in CASES if name.startswith("windows")}
    assert set(signal.windows.__all__) == named


def test_complex_signals():
    z = SHORT + 1j * SHORT[::-1]
    for f in (
        lambda m, x: m.lfilter(B, A, x),
        lambda m, x: m.convolve(x, np.array([1.0, 2j])),
        lambda m, x: m.correlate(x, np.array([1.0, 2j])),
        lambda m, x: m.correlate(np.array([1.0, 2j]), x),
        lambda m, x: m.resample(x, 4),
        lambda m, x: m.resample(x, 9),
        lambda m, x: m.resample(x, 5, domain="freq"),
        lambda m, x: m.welch(x, nperseg=4)[1],
        lambda m, x: m.detrend(x),
    ):
        found = ft.jvp(lambda x, f=f: f(signal, x), (z,), (z,))[0]
        assert_trees_close(found, f(scipy.signal, z), 1e-9, 1e-11, dtypes=True)
        ft.check_derivatives(lambda x, f=f: f(signal, x), (z,), order=1)


def test_single_precision_is_kept():
    x = SHORT.astype(np.float32)
    for f in (
        lambda m, x: m.lfilter(B.astype(np.float32), A.astype(np.float32), x),
        lambda m, x: m.convolve(x, x),
        lambda m, x: m.savgol_filter(x, 3, 1),
        lambda m, x: m.detrend(x),
        lambda m, x: m.medfilt(x, 3),
        lambda m, x: m.welch(x, nperseg=4)[1],
        lambda m, x: m.resample_poly(x, 2, 3),
        lambda m, x: m.hilbert(x),
    ):
        found = ft.jvp(lambda x, f=f: f(signal, x), (x,), (x,))[0]
        assert_trees_close(found, f(scipy.signal, x), 1e-4, 1e-5, dtypes=True)


def test_the_transpose_of_a_filter_runs_backwards():
    g = normal(6)
    pulled = ft.vjp(lambda x: signal.lfilter(B, A, x), SHORT)[1](g)[0]
    assert_trees_close(pulled, scipy.signal.lfilter(B, A, g[::-1])[::-1], 1e-12)


def test_states_continue_a_filter():
    z = normal(3)

    def in_two(b, a, x, z):
        first, z = signal.lfilter(b, a, x[:4], zi=z)
        second, z = signal.lfilter(b, a, x[4:], zi=z)
        return np.concatenate([first, second]), z

    whole = lambda b, a, x, z: signal.lfilter(b, a, x, zi=z)
    args = (B, A, X, z)
    assert_trees_close(ft.jvp(in_two, args, args), ft.jvp(whole, args, args), 1e-9)


def test_long_signals_are_filtered_by_compiled_code():
    x = normal(20_000)
    f = lambda a: np.sum(signal.lfilter([1.0], a, x) ** 2)
    step = central_difference_jvp(f, (A,), (A,))
    assert_trees_close(ft.jvp(f, (A,), (A,))[1], step, 1e-6)
    assert len(ft.make_graph(ft.grad(f))(A).equations) < 60


def test_errors():
    with pytest.raises(ft.errors.MissingRuleError, match=r"method='gust'.*method='pad'"):
        ft.grad(lambda x: np.sum(signal.filtfilt(B, A, x, method="gust")))(X)
    with pytest.raises(ValueError, match="padlen"):
        ft.grad(lambda x: np.sum(signal.filtfilt(B, A, x)))(SHORT)
    with pytest.raises(ValueError, match="valid"):
        ft.grad(lambda x: np.sum(signal.convolve(x, np.ones((3, 1)), "valid")))(np.ones((1, 3)))
    with pytest.raises(ValueError, match="mode"):
        ft.grad(lambda x: np.sum(signal.convolve(x, X, "odd")))(X)
    with pytest.raises(ValueError, match="sections"):
        ft.grad(lambda x: np.sum(signal.sosfilt(np.ones((2, 5)), x)))(X)
    with pytest.raises(ft.errors.MissingRuleError, match="chebwin"):
        ft.grad(lambda a: np.sum(signal.get_window(("chebwin", a), 7)))(50.0)
    with pytest.raises(ft.errors.MissingRuleError, match="worN"):
        ft.grad(lambda a: np.abs(signal.freqs(B, a)[1][0]))(A)


def test_stored_graphs_find_the_primitives(tmp_path):
    file = tmp_path / "filter.graph"

    def f(x):
        y = signal.lfilter(B, A, x) + scipy_fft.dct(x)
        y = y + linalg.solveh_banded(np.array([[0.0] + [1.0] * 5, [4.0] * 6]), x)
        return y + linalg.logm(np.diag(np.exp(x)))[0] + linalg.eigh(np.diag(x))[0]

    ft.make_graph(f)(SHORT).save(file)
    program = (
        f"import functrans, numpy as np\nx = np.array({SHORT.tolist()})\n"
        f"print(repr(np.sum(functrans.load_graph({str(file)!r})(x))))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout.startswith("np.float64"), found.stderr
    np.testing.assert_allclose(float(found.stdout[11:-2]), np.sum(f(SHORT)), rtol=1e-9)


def test_entries_of_lists_may_be_traced():
    f = lambda a, b: signal.lfilter([a, 0.5], [1.0, b], SHORT)
    check_derivatives(f, (0.3, -0.2))
    check_lanes(f, (0.3, -0.2))
    assert_trees_close(ft.jit(f)(0.3, -0.2), f(0.3, -0.2), 1e-12)
