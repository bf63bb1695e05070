"""The packages of the corpus, with their versions, and how they are installed into a cache."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Package:
    """A distribution of the registry, and the modules in which functions are looked for."""

    name: str
    version: str
    modules: tuple[str, ...]
    field: str

    @property
    def pin(self) -> str:
        return f"{self.name}=={self.version}"


def _package(pin: str, modules: str, field: str) -> Package:
    name, version = pin.split("==")
    return Package(name, version, tuple(modules.split()), field)


PACKAGES = (
    # Objective functions.
    _package("landscapes==0.0.13", "landscapes", "test functions of optimization"),
    _package("benchmark-functions==1.1.4", "benchmark_functions", "test functions of optimization"),
    _package("opfunu==1.0.4", "opfunu", "test functions of optimization"),
    _package("deap==1.4.4", "deap.benchmarks", "test functions of optimization"),
    _package("pymoo==0.6.2", "pymoo.problems", "test functions of optimization"),
    _package("niapy==2.7.1", "niapy.problems", "test functions of optimization"),
    _package("surfaces==0.9.0", "surfaces.test_functions", "test functions of optimization"),
    _package("dysts==0.8", "dysts.flows dysts.maps", "differential equations"),
    # Rotations and kinematics.
    _package("transforms3d==0.4.2", "transforms3d", "rotations"),
    _package("pytransform3d==3.17.0", "pytransform3d", "rotations"),
    _package("pyrr==0.10.3", "pyrr", "rotations"),
    _package("ahrs==0.4.0", "ahrs", "attitude estimation"),
    _package("rowan==1.3.2", "rowan", "rotations"),
    _package("pyquaternion==0.9.9", "pyquaternion", "rotations"),
    _package("squaternion==2025.3.2", "squaternion", "rotations"),
    _package("spatialmath-python==1.1.18", "spatialmath", "robotics"),
    _package("scikit-kinematics==0.10.4", "skinematics", "kinematics"),
    _package("filterpy==2.0.0", "filterpy", "Kalman filters"),
    _package("control==0.10.2", "control", "control theory"),
    # Geometry.
    _package("trimesh==5.2.0", "trimesh", "geometry"),
    _package("vg==2.0.0", "vg", "geometry"),
    _package("geomdl==5.4.0", "geomdl", "splines"),
    _package("bezier==2024.6.20", "bezier.hazmat", "splines"),
    # Color.
    _package("colour-science==0.4.7", "colour", "color science"),
    _package("colorspacious==1.1.2", "colorspacious", "color science"),
    _package("colormath==3.0.0", "colormath", "color science"),
    # Geodesy and astronomy.
    _package("pymap3d==3.2.0", "pymap3d", "geodesy"),
    _package("nvector==1.2.0", "nvector", "geodesy"),
    _package("pygeodesy==26.10.26", "pygeodesy", "geodesy"),
    _package("haversine==2.9.0", "haversine", "geodesy"),
    _package("skyfield==1.55", "skyfield", "astronomy"),
    _package("PyAstronomy==0.25.0", "PyAstronomy", "astronomy"),
    _package("pyorbital==1.13.0", "pyorbital", "orbits"),
    _package("pysolar==0.13", "pysolar", "solar position"),
    _package("solarpy==0.1.3", "solarpy", "solar position"),
    # Chemistry, thermodynamics and weather.
    _package("chemicals==1.5.2", "chemicals", "chemistry"),
    _package("thermo==0.6.1", "thermo", "thermodynamics"),
    _package("fluids==1.3.1", "fluids", "fluid dynamics"),
    _package("ht==1.2.0", "ht", "heat transfer"),
    _package("iapws==1.5.5", "iapws", "water and steam"),
    _package("PsychroLib==2.5.0", "psychrolib", "moist air"),
    _package("thermofeel==2.3.0", "thermofeel", "thermal comfort"),
    _package("pvlib==0.16.1", "pvlib", "solar energy"),
    _package("windpowerlib==0.2.2", "windpowerlib", "wind energy"),
    _package("ambiance==1.3.1", "ambiance", "standard atmosphere"),
    # Statistics, signals and finance.
    _package("lmfit==1.3.4", "lmfit.lineshapes lmfit.models", "line shapes"),
    _package("PeakUtils==1.3.5", "peakutils", "peaks of signals"),
    _package("scikit-rf==2.2.0", "skrf", "radio frequency networks"),
    _package("periodictable==2.1.0", "periodictable", "X-ray and neutron scattering"),
    _package("neurodsp==2.3.0", "neurodsp", "neural signals"),
    _package("python_speech_features==0.6", "python_speech_features", "speech"),
    _package("numpy-financial==1.0.0", "numpy_financial", "finance"),
    _package("vollib==1.0.11", "vollib", "finance"),
    _package("pymanopt==2.2.1", "pymanopt.manifolds", "manifolds"),
    _package("numdifftools==0.11.2", "numdifftools", "numerical differentiation"),
)

# What the packages import. NumPy, SciPy and matplotlib are those of the environment.
SUPPORT = (
    "about-time==4.2.2",
    "alive-progress==3.3.0",
    "ansitable==1.2.0",
    "asteval==1.0.10",
    "bidict==0.24.1",
    "cffi==2.1.1",
    "cma==4.5.0",
    "dill==0.4.1",
    "h5py==3.16.0",
    "jplephem==2.24",
    "karney==1.1.1",
    "moocore==0.3.2",
    "multipledispatch==1.0.0",
    "pandas==3.1.1",
    "py_lets_be_rational==1.0.1",
    "pycparser==3.12",
    "pyproj==3.7.2",
    "python-dateutil==4.0.0",
    "pytz==2026.6",
    "requests==2.34.2",
    "setuptools==80.10.2",
    "sgp4==2.27",
    "simplejson==4.3.0",
    "six==1.17.0",
    "toolz==1.2.0",
    "typing_extensions==4.16.0",
    "tzdata==2026.6",
    "uncertainties==3.2.3",
    "xarray==2026.9.0",
)

# The time limits and the number of functions are per process and package, so one thread is enough.
ENVIRONMENT = {
    "MPLBACKEND": "Agg",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}


def default_cache() -> Path:
    """The folder of the packages, unless `--cache` names another."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "functrans-corpus"


def site_folder(cache: Path) -> Path:
    return cache / "site"


def install(cache: Path, pins: list[str]) -> list[str]:
    """Install what is missing into the cache, and return the pins that could not be installed.

    Dependencies are left out: those that matter are in SUPPORT, and the others would replace
    NumPy by another version.
    """
    site = site_folder(cache)
    site.mkdir(parents=True, exist_ok=True)
    marks = cache / "installed"
    marks.mkdir(exist_ok=True)
    failed = []
    for pin in pins:
        mark = marks / pin
        if mark.exists():
            continue
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
        command += ["--disable-pip-version-check", "--target", str(site), "--upgrade", pin]
        print(f"installing {pin}", file=sys.stderr)
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            failed.append(pin)
            print(done.stderr.strip().splitlines()[-1:], file=sys.stderr)
        else:
            mark.touch()
    return failed
