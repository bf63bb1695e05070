"""Whatever can happen to a cache folder, at random. A cache must neither crash nor mislead us.

python -m tools.hostile_folder --attacks 10000

After each attack a compiled function is asked for, and must give the right numbers. Half of the attacks
are made by one process that is alone in its folder, the other half by eight processes that race in one
folder, each of which attacks and compiles. All are separate processes, started again and again, and
none may end by a signal or an error. test_native_cache.py makes a few attacks.
"""

import argparse
import contextlib
import hashlib
import json
import os
import random
import resource
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import functrans as ft
from functrans.compiler.native import cache

X, K = np.linspace(0, 1, 7), np.arange(5, dtype=np.int32)
CALLS = [
    (lambda x: np.sin(x) * 2.0 + x, (X,)),
    (lambda x, k: (x[::-1] * 3.0, k * k), (X, K)),
    (lambda d: {"sum": np.sum(d["a"] * d["a"]), "all": [d["a"] + 1.0]}, ({"a": X},)),
    (lambda x: x[np.array([1, 0, 3])] @ np.ones((3, 2)), (X,)),
    (lambda k: k.astype(np.float64) / 2.0, (K,)),
]
EXPECTED = [function(*args) for function, args in CALLS]


def use(which):
    """Compile a function, from its file if that is good, and look at what it gives."""
    function, args = CALLS[which]
    found = ft.jit(function, backend="native")(*args)
    for one, other in zip(ft.tree.leaves(found), ft.tree.leaves(EXPECTED[which]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


# Changes to a file. Each may fail: another process may be faster. Nothing outside of the folder's own
# parent is ever the target of a link, so that nothing else can be hit.


_MOST = 1 << 22  # bytes that an attack reads: another process may just have made the file huge


def _content(path):
    with open(path, "rb") as file:
        return file.read(_MOST)


def _rewrite(path, content):
    path.unlink()
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


def _is_plain(path):
    found = os.lstat(path)
    return stat.S_ISREG(found.st_mode) and found.st_size < _MOST


def _exchange(draw, path, others):
    other = draw.choice(others)
    one, two = _content(path), _content(other)
    _rewrite(path, two)
    _rewrite(other, one)


def _copy(draw, path, others):
    _rewrite(path, _content(draw.choice(others)))


def _graft(draw, path, others):
    """The tag of one file, and the code of another."""
    _rewrite(path, _content(path)[:32] + _content(draw.choice(others))[32:])


def _truncate(draw, path, others):
    content = _content(path)
    _rewrite(path, content[: draw.randrange(len(content) + 1)])


def _flip(draw, path, others):
    content = bytearray(_content(path))
    for _ in range(draw.choice((1, 1, 1, 8, 100)) if content else 0):
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    _rewrite(path, bytes(content))


def _overwrite(draw, path, others):
    """Like _flip, but in the file as it is, which another process may be reading."""
    with open(path, "r+b") as file:
        file.seek(draw.randrange(os.fstat(file.fileno()).st_size + 1))
        file.write(draw.randbytes(draw.choice((1, 32, 4096))))


def _lengthen(draw, path, others):
    _rewrite(path, _content(path) + draw.randbytes(draw.choice((1, 100, 100_000))))


def _noise(draw, path, others):
    _rewrite(path, draw.randbytes(draw.choice((0, 1, 31, 32, 33, 64, 5000))))


def _checksum(draw, path, others):
    """Content with a right checksum, of which anybody can compute some."""
    data = bytearray(_content(path)[32:])
    if data:
        data[draw.randrange(len(data))] ^= 255
    key = bytes.fromhex(path.stem) if path.suffix == ".o" else b""
    plain = draw.choice((bytes(data), key + bytes(data)))
    _rewrite(path, hashlib.sha256(plain).digest() + bytes(data))


def _link(draw, path, others):
    path.unlink()
    outside = path.parent.with_name("outside")
    outside.write_text("not code")
    path.symlink_to(draw.choice((*others, "nothing", path, outside, path.parent)))


def _hard_link(draw, path, others):
    path.unlink()
    os.link(draw.choice(others), path)


def _pipe(draw, path, others):
    path.unlink()
    os.mkfifo(path)


def _socket(draw, path, others):
    path.unlink()
    here = os.getcwd()
    os.chdir(path.parent)  # the path of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _folder(draw, path, others):
    path.unlink()
    path.mkdir()
    if draw.random() < 0.5:
        (path / "x").write_text("x")


def _huge(draw, path, others):
    with open(path, "r+b") as file:
        file.truncate(1 << draw.choice((26, 27, 33, 40)))


def _mode(draw, path, others):
    path.chmod(draw.choice((0, 0o400, 0o644, 0o666, 0o777)))  # never a link: see _is_plain


def _owner(draw, path, others):
    if os.geteuid() == 0:
        os.lchown(path, 12345, 12345)


def _remove(draw, path, others):
    path.unlink()


FILES = [
    *(_exchange, _copy, _graft, _truncate, _flip, _overwrite, _lengthen, _noise, _checksum),
    *(_link, _hard_link, _pipe, _socket, _folder, _huge, _mode, _owner, _remove),
]


# Changes to the folder.


def _mend(folder):
    folder.parent.chmod(0o700)
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    elif folder.exists():
        folder.chmod(0o700)
        if os.geteuid() == 0:
            os.lchown(folder, 0, 0)
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif not _is_plain(path):
                path.unlink()


def _open_to_all(draw, folder):
    folder.chmod(draw.choice((0o777, 0o770, 0o702, 0o1777)))


def _parent_open_to_all(draw, folder):
    folder.parent.chmod(draw.choice((0o777, 0o770, 0o1777)))


def _foreign(draw, folder):
    if os.geteuid() == 0:
        os.lchown(folder, 12345, 12345)


def _gone(draw, folder):
    shutil.rmtree(folder)


def _a_file(draw, folder):
    shutil.rmtree(folder)
    folder.write_text("not a folder")


def _elsewhere(draw, folder):
    other = folder.with_name(f"{folder.name}-moved")
    shutil.rmtree(other, ignore_errors=True)
    folder.rename(other)
    folder.symlink_to(draw.choice((other, folder, "nowhere/at/all")))


FOLDERS = [_open_to_all, _parent_open_to_all, _foreign, _gone, _a_file, _elsewhere]


def _change(draw, folder):
    """Make one attack, and return its name; that of one that failed too, since it may be half made."""
    # A folder or a secret that is lost takes all code with it, so these are attacked less often.
    if draw.random() < 0.05:
        attack, arguments = draw.choice(FOLDERS), (folder,)
    else:
        paths = []
        with contextlib.suppress(OSError):
            paths = sorted(path for path in folder.iterdir() if _is_plain(path))
        if not paths:
            return "nothing to attack"
        codes = [path for path in paths if path.name != "secret"]
        path = draw.choice(codes if codes and draw.random() > 0.02 else paths)
        attack, arguments = draw.choice(FILES), (path, paths)
    with contextlib.suppress(OSError):
        attack(draw, *arguments)
    return attack.__name__.strip("_")


@contextlib.contextmanager
def _no_room(most):
    """While the block runs, no file can be longer than this, as on a disk that is full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


# One process.


def _counted(calls, name, function):
    def call(argument):
        calls[name] += 1
        return function(argument)

    return call


def attack(folder, seed, count):
    """Attack a folder and use it, in turn; the outcome as a dictionary of numbers."""
    draw = random.Random(seed)
    made = Counter()
    slowest = 0.0
    calls = Counter()
    for name in ("object_code", "Code"):  # what compiles, and what loads the outcome
        setattr(cache, name, _counted(calls, name, getattr(cache, name)))
    for number in range(count):
        made[_change(draw, folder)] += 1
        room = _no_room(draw.choice((0, 10, 1000))) if draw.random() < 0.05 else None
        begun = time.monotonic()
        with room or contextlib.nullcontext():
            use(draw.randrange(len(CALLS)))
        slowest = max(slowest, time.monotonic() - begun)
        if number % 2:
            with contextlib.suppress(OSError):
                _mend(folder)
            use(draw.randrange(len(CALLS)))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {
        "attacks": count,
        "made": made,
        "loaded": calls["Code"],
        "compiled": calls["object_code"],
        "slowest": slowest,
        "memory": memory,
    }


# All processes.


def _together(folder, seeds, count):
    """One process for each seed, in one folder at a time; their outcomes, and what went wrong."""
    command = [
        sys.executable,
        "-m",
        "tools.hostile_folder",
        "--folder",
        str(folder),
        "--attacks",
        str(count),
    ]
    running = [
        subprocess.Popen(
            [*command, "--seed", str(seed), "--alone"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in seeds
    ]
    outcomes, failures = [], []
    for seed, process in zip(seeds, running, strict=True):
        try:
            out, err = process.communicate(timeout=600)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        if process.returncode == 0:
            outcomes.append(json.loads(out))
        else:  # below 0: a signal
            failures.append(f"seed {seed} ended with {process.returncode}: {err[-2000:]}")
    return outcomes, failures


_PROCESSES = 8
_AT_ONCE = 250  # attacks by processes that start and end together


def main(folder, attacks, seed):
    """Run all attacks in separate processes; returns 0 if none of them failed."""
    begun = time.monotonic()
    outcomes, failures = [], []
    done = wave = 0
    while done < attacks:
        processes = _PROCESSES if wave % 2 else 1
        count = max(1, min(_AT_ONCE, attacks - done) // processes)
        seeds = [seed + 1000 * wave + k for k in range(processes)]
        place = folder / ("race" if wave % 2 else "alone")
        place.mkdir(mode=0o700, exist_ok=True)
        found, wrong = _together(place / "code", seeds, count)
        outcomes += found
        failures += wrong
        done += processes * count
        wave += 1
    slowest = max((outcome["slowest"] for outcome in outcomes), default=0)
    most = max((outcome["memory"] for outcome in outcomes), default=0)
    if most > 1000:
        failures.append(f"a process took {most} MB")
    made = sum((Counter(outcome["made"]) for outcome in outcomes), Counter())
    loaded, compiled = (sum(outcome[key] for outcome in outcomes) for key in ("loaded", "compiled"))
    print(
        f"{sum(made.values())} attacks in {len(outcomes)} processes, {time.monotonic() - begun:.0f} s: "
        f"{len(failures)} failed.\n{loaded} modules loaded, {loaded - compiled} of them from a file "
        f"that was still good and {compiled} compiled; at most {slowest:.2f} s and {most} MB.\n"
        f"{', '.join(f'{name} {number}' for name, number in sorted(made.items()))}"
    )
    print(*failures, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--attacks", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where to make the folders; a temporary one")
    parser.add_argument("--alone", action="store_true", help="in this process, on that very folder")
    options = parser.parse_args()
    if options.alone:
        warnings.simplefilter("ignore", ft.errors.CacheWarning)
        os.environ["FUNCTRANS_CACHE_DIR"] = str(options.folder)
        print(json.dumps(attack(options.folder, options.seed, options.attacks)))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            sys.exit(main(options.folder or Path(temporary), options.attacks, options.seed))
