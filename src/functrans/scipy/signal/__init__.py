"""scipy.signal for traced values: convolutions, filters, spectra, resampling, waveforms and windows."""

from __future__ import annotations

from functrans.core.publishing import publish as _publish
from functrans.scipy.signal import windows
from functrans.scipy.signal.choosing import (
    get_window,
)
from functrans.scipy.signal.convolutions import (
    convolve,
    convolve2d,
    correlate,
    correlate2d,
    deconvolve,
    fftconvolve,
    oaconvolve,
)
from functrans.scipy.signal.filtering import (
    filtfilt,
    lfilter,
    lfilter_zi,
    sosfilt,
    sosfilt_zi,
    sosfiltfilt,
)
from functrans.scipy.signal.responses import (
    bilinear,
    freqs,
    freqz,
    freqz_sos,
    freqz_zpk,
    sos2tf,
    sosfreqz,
    tf2zpk,
    zpk2tf,
)
from functrans.scipy.signal.sampling import (
    decimate,
    resample,
    resample_poly,
    upfirdn,
)
from functrans.scipy.signal.smoothing import (
    detrend,
    hilbert,
    medfilt,
    medfilt2d,
    savgol_coeffs,
    savgol_filter,
    wiener,
)
from functrans.scipy.signal.spectra import (
    coherence,
    csd,
    periodogram,
    spectrogram,
    stft,
    welch,
)
from functrans.scipy.signal.waveforms import (
    chirp,
    gausspulse,
    sawtooth,
    square,
    sweep_poly,
)

__all__ = [
    "bilinear",
    "chirp",
    "coherence",
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "csd",
    "decimate",
    "deconvolve",
    "detrend",
    "fftconvolve",
    "filtfilt",
    "freqs",
    "freqz",
    "freqz_sos",
    "freqz_zpk",
    "gausspulse",
    "get_window",
    "hilbert",
    "lfilter",
    "lfilter_zi",
    "medfilt",
    "medfilt2d",
    "oaconvolve",
    "periodogram",
    "resample",
    "resample_poly",
    "savgol_coeffs",
    "savgol_filter",
    "sawtooth",
    "sos2tf",
    "sosfilt",
    "sosfilt_zi",
    "sosfiltfilt",
    "sosfreqz",
    "spectrogram",
    "square",
    "stft",
    "sweep_poly",
    "tf2zpk",
    "upfirdn",
    "welch",
    "wiener",
    "windows",
    "zpk2tf",
]

_publish(__name__, [globals()[name] for name in __all__])


def __dir__() -> list[str]:
    return __all__
