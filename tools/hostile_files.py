"""Files made to take memory or time, to crash or to run code, for test_hostile_files.py.

python -m tools.hostile_files > files
python -m tools.hostile_files read < files   # prints a line for each: its size, seconds, MB, and the outcome
"""

import io
import json
import resource
import sys
import tempfile
import time
import zipfile
import zlib
from pathlib import Path

import numpy as np

import functrans as ft
import functrans.torch as torch
from functrans.compiler.storage import VERSION

_STORED, _DEFLATED = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
_FLOAT = [[], "<f8", False]
_HASH = (1 << 61) - 1  # integers that differ by a multiple of this have one hash


def _archive(members, method=_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return file.getvalue()


def _npz(method=_STORED, **arrays):
    file = io.BytesIO()
    (np.savez_compressed if method == _DEFLATED else np.savez)(file, **arrays)
    return file.getvalue()


def _npy(header, data=b""):
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


def _text(text, constants=None, method=_DEFLATED, outer=_STORED):
    """A file with this description."""
    held = _npz() if constants is None else constants
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("graph.json", text, method)
        archive.writestr("constants.npz", held, outer)
    return file.getvalue()


def _document(**parts):
    return {
        "format": "functrans graph",
        "version": VERSION,
        "inputs": [],
        "input_names": None,
        "constants": [],
        "equations": [],
        "outputs": [],
        "axes": [],
        "in_tree": None,
        "out_tree": None,
    } | parts


def _graph(held=None, method=_DEFLATED, **parts):
    return _text(json.dumps(_document(**parts)), held, method)


def _call(primitive, given, params, result):
    """A graph of one equation, with these specs of its arguments and its result."""
    inputs = [{"variable": k, "spec": spec} for k, spec in enumerate(given)]
    outputs = [{"variable": len(given), "spec": result}]
    equation = {
        "primitive": primitive,
        "inputs": list(range(len(given))),
        "params": params,
        "outputs": outputs,
    }
    return _graph(inputs=inputs, equations=[equation], outputs=[len(given)])


def _lying(data, name, claimed):
    """An archive whose directory and member say another length than there is."""
    data = bytearray(data)
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as archive:
        real = archive.getinfo(name).file_size.to_bytes(4, "little")
    return bytes(data).replace(real, claimed.to_bytes(4, "little"))


def _repeated(count, size):
    """An archive of arrays that are all the same bytes: only the directory is repeated."""
    one = _npz(x=np.zeros(size))
    end = one.rindex(b"PK\x05\x06")
    start = one.index(b"PK\x01\x02")
    entry = one[start:end]
    names = [f"{k:05d}"[:5].encode() for k in range(count)]
    directory = b"".join(entry.replace(b"x.npy", name) for name in names)
    tail = bytearray(one[end:])
    tail[8:12] = count.to_bytes(2, "little") * 2
    tail[12:16] = len(directory).to_bytes(4, "little")
    return one[:start] + directory + bytes(tail)


_HUGE = "{'descr': '<f8', 'fortran_order': False, 'shape': (%s,), }\n"
_DEEP = 200_000


def graph_files():
    """Names, and the bytes of files that `load_graph` must refuse."""
    empty, version = json.dumps(_document()), f'"version": {VERSION}'
    yield "nothing", b""
    yield "noise", np.random.default_rng(0).bytes(10_000)
    yield "spaces", _text(empty + " " * (60 << 20))
    yield "empty lists", _text("[" + "[]," * (20 << 20) + "[]]")
    yield "empty objects", _text("[" + "{}," * (20 << 20) + "{}]")
    yield (
        "many inputs",
        _text(empty.replace('"inputs": []', '"inputs": [' + "{}," * (20 << 20) + "0]")),
    )
    # As much as the size of the file allows.
    noise = np.random.default_rng(2).bytes(234_000)
    entry = json.dumps({"primitive": "sin", "inputs": [0], "params": {}, "outputs": [0]})
    for unit in "[]", "{}", '{"":{}}', "[[[[]]]]", "1.5", "-300", entry:
        text = f"[{','.join([unit] * (7_000_000 // len(unit)))}]"
        equations = empty.replace('"equations": []', f'"equations": {text}')
        yield f"a file full of {unit[:20]}", _text(equations, noise)
    inputs = [{"variable": k, "spec": _FLOAT} for k in range(30_000)]
    sines = [
        {
            "primitive": "sin",
            "inputs": [0],
            "params": {},
            "outputs": [{"variable": 1 + k, "spec": _FLOAT}],
        }
        for k in range(70_000)
    ]
    held = _archive([("c.npy", _npy((_HUGE % "28750").encode(), noise[:230_000]))], _STORED)
    yield "many equations", _graph(held, inputs=inputs[:1], equations=sines, outputs=[-1])
    yield "many inputs that fit", _graph(held, inputs=inputs, outputs=[-1])
    yield "a name of many characters", _graph(input_names=["x" * (60 << 20)])
    yield "a format of many characters", _graph(format="x" * (1 << 20))
    yield "a version of many characters", _graph(version="x" * (1 << 20))
    yield (
        "a version of many digits",
        _text(empty.replace(version, '"version": ' + "9" * 10**6)),
    )
    yield "a key twice", _text(empty.replace(version, f"{version}, {version}"))
    yield "not a number", _text(empty.replace(version, '"version": NaN'))
    for opening, closing in ("[", "]"), ('{"a":', "}"):
        yield f"deep {opening}", _text(opening * _DEEP + "1" + closing * _DEEP)
    deep = '["tuple",' * _DEEP + '"leaf"' + "]" * _DEEP
    yield "a deep container", _text(empty.replace('"in_tree": null', f'"in_tree": {deep}'))
    yield (
        "a deep parameter",
        _text(
            json.dumps(
                _document(equations=[{"primitive": "sin", "inputs": [], "params": {"x": "deep"}}])
            ).replace('"deep"', deep)
        ),
    )
    inner = json.dumps(_document(axes=[["deep", 1]]))
    procedures = '"deep"'
    for _ in range(12):
        procedures = json.dumps(["procedure", json.loads(inner)]).replace('"deep"', procedures)
    yield "procedures in procedures", _text(inner.replace('"deep"', procedures))
    yield "UTF-32", _text(empty.encode("utf-32"))
    yield "not UTF-8", _text(b"\xff" + empty.encode())
    yield (
        "an alien member",
        _archive([("graph.json", empty), ("constants.npz", _npz()), ("x", b"")]),
    )
    yield "no constants", _archive([("graph.json", empty)])
    for method in zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA:
        yield f"compressed by method {method}", _text(empty + " " * (60 << 20), method=method)
    yield "a length that lies", _lying(_text(empty + " " * (60 << 20)), "graph.json", len(empty))
    # Constants.
    constant = {"variable": 0, "name": "c", "spec": [[1 << 27], "<f8", False], "array": True}
    yield "compressed constants", _graph(_npz(_DEFLATED, c=np.zeros(1 << 24)), constants=[constant])
    text = json.dumps(_document(constants=[constant]))
    yield "a bomb in the archive", _text(text, _npz(c=np.zeros(1 << 24)), outer=_DEFLATED)
    yield "one array many times", _graph(_repeated(2000, 10_000), _STORED, constants=[constant])
    for shape in (
        "134217728",
        "4611686018427387904, 4",
        "9" * 18 + ", 0",
        ("1, " * 5000)[:-2],
        "-1",
    ):
        for data in b"", b"x" * 8:
            file = _archive([("c.npy", _npy((_HUGE % shape).encode(), data))], _STORED)
            yield f"a shape of {shape[:20]}", _graph(file, constants=[constant])
    for header in (
        b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (__import__('os').abort(),), }\n",
        b"(" * 60_000,
        b"{'descr': [('a', '<f8')] * 10**9, 'fortran_order': False, 'shape': (1,), }\n",
    ):
        file = _archive([("c.npy", _npy(header, b"\0" * 8))], _STORED)
        yield f"a header {header[:24]}", _graph(file, constants=[constant])
    # Equations.
    big = [[1 << 33], "|u1", False]
    yield "bits", _call("unpackbits", [big], {"axis": 0, "count": None, "bitorder": "big"}, _FLOAT)
    yield "packed bits", _call("packbits", [big], {"axis": 0, "bitorder": "big"}, _FLOAT)
    vector = [[4], "<f8", False]
    long = {"axis": 0, "n": 1 << 32, "norm": None}
    yield "a long transform", _call("irfft", [[[4], "<c16", False]], long, _FLOAT)
    ones = ["list", *[0] * 100_000]
    wide = [[2, 1 << 20], "<f8", False]
    yield "a list as index", _call("index", [wide], {"template": ["tuple", ones]}, _FLOAT)
    entries = ["array", "<i8", [1000], ["list", *[0] * 1000]]
    yield "an array as index", _call("index", [wide], {"template": ["tuple", entries]}, _FLOAT)
    code = "__import__('os').abort()"
    for value in code, ["tuple", code], ["slice", code, None, None]:
        params = {"shape": ["tuple", 4], "template": ["tuple", value]}
        yield f"code in a scatter: {value}", _call("scatter", [vector], params, vector)
        sums = {"shape": ["tuple", 4], "templates": ["tuple", ["tuple", value]]}
        yield f"code in a sum: {value}", _call("scatter_sum", [vector], sums, vector)
        for primitive in "index", "update":
            given = [vector, vector][: 1 if primitive == "index" else 2]
            yield f"code in {primitive}: {value}", _call(primitive, given, params, vector)
        axis = {"axis": value, "inverse": False, "norm": None}
        yield (
            f"code in a transform: {value}",
            _call("fft", [[[4], "<c16", False]], axis, [[4], "<c16", False]),
        )
    yield (
        "a huge template",
        _call("index", [vector], {"template": ["tuple", *[None] * 10**6]}, vector),
    )
    yield "a huge einsum", _call("einsum", [vector], {"subscripts": "a" * 10**6 + "->"}, _FLOAT)
    yield (
        "a product beyond memory",
        _graph(inputs=[{"variable": 0, "spec": [[1 << 40] * 3, "<f8", False]}]),
    )
    yield "many axes", _graph(inputs=[{"variable": 0, "spec": [[1] * 10**5, "<f8", False]}])
    yield "a long dtype", _graph(inputs=[{"variable": 0, "spec": [[1], "<f8," * 10**6, False]}])
    numbers = [{"variable": k * _HASH, "spec": _FLOAT} for k in range(50_000)]
    yield "variables of one hash", _graph(inputs=numbers)
    keys = [[k * _HASH, "none"] for k in range(100_000)]
    yield "keys of one hash", _graph(in_tree=["dict", *keys])
    yield "axes of one hash", _graph(axes=[[k * _HASH, 1] for k in range(100_000)])
    yield "a key of a container twice", _graph(in_tree=["dict", [1, "none"], [1, "none"]])


def tensor_files():
    """The same for `torch.load`."""

    def described(structure, method=_STORED, **arrays):
        text = structure if isinstance(structure, str) else json.dumps(structure)
        return _npz(method, structure=np.frombuffer(text.encode(), np.uint8), **arrays)

    def member(content, method=_STORED):
        return _archive([("structure.npy", content)], method)

    tensor = {"kind": "tensor", "name": "a", "requires_grad": False}
    value = {"kind": "value", "value": 1}
    yield "nothing", b""
    yield "noise", np.random.default_rng(1).bytes(10_000)
    yield "no structure", _npz(a=np.zeros(3))
    yield "a long description", described(" " * (60 << 20) + json.dumps(value), _DEFLATED)
    yield "objects", described("[" + "{}," * (1 << 15) + "0]")
    yield "deep", described('{"kind":"list","items":[' * 10_000 + "1" + "]}" * 10_000)
    yield (
        "one tensor many times",
        described({"kind": "list", "items": [tensor] * 2000}, a=np.zeros(10_000)),
    )
    yield "one array many times", _repeated(2000, 10_000)
    yield "no tensor", described(tensor)
    yield (
        "an integer that requires grad",
        described(tensor | {"requires_grad": True}, a=np.arange(3)),
    )
    yield "requires_grad is a text", described(tensor | {"requires_grad": "x"}, a=np.zeros(3))
    yield "another kind", described({"kind": "eval", "value": "1"})
    yield "a container as value", described({"kind": "value", "value": [1]})
    yield (
        "a list as key",
        described({"kind": "dict", "items": [[{"kind": "list", "items": []}, value]]}),
    )
    keys = [[{"kind": "value", "value": k * _HASH}, value] for k in range(3000)]
    yield "keys of one hash", described({"kind": "dict", "items": keys})
    yield "a tensor of text", described(tensor, a=np.array(["x"]))
    yield "compressed", described(tensor, _DEFLATED, a=np.zeros(1 << 24))
    yield "a pickle", member(b"\x80\x04cos\nabort\n(tR.")
    for shape in "134217728", "4611686018427387904, 4", "-1":
        yield f"a shape of {shape}", member(_npy((_HUGE % shape).encode(), b"x" * 8))


def _peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    made = [("graph", name, zlib.compress(data)) for name, data in graph_files()]
    made += [("tensor", name, zlib.compress(data)) for name, data in tensor_files()]
    print(json.dumps(made, default=lambda data: data.hex()))


def read(files, folder):
    """Load each from a file, and say what happened."""
    kinds = {
        "graph": (ft.load_graph, ft.errors.GraphError),
        "tensor": (torch.load, torch.errors.TensorValueError),
    }
    ft.load_graph(io.BytesIO(_graph()))
    for kind, name, data in files:
        path = Path(folder) / "hostile"
        path.write_bytes(zlib.decompress(bytes.fromhex(data)))
        load, documented = kinds[kind]
        outcome, before, begun = "is read", _peak(), time.perf_counter()
        try:
            load(path)
        except documented as error:
            outcome = "is refused" if len(str(error)) < 1000 else "has a long message"
        except BaseException as error:
            outcome = f"raises {type(error).__name__}"
        seconds, growth = time.perf_counter() - begun, _peak() - before
        print(json.dumps([f"{kind}: {name}", path.stat().st_size, seconds, growth, outcome]))
        sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:] == ["read"]:
        with tempfile.TemporaryDirectory() as temporary:
            read(json.load(sys.stdin), temporary)
    else:
        main()
