"""docs/architecture.md is the true map: every module is on it, in its room, and nothing else is."""

import ast
import re
from collections import defaultdict

from tests.support import ROOT

PACKAGE = ROOT / "src" / "functrans"


def modules_on_the_map():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    block = re.search(r"```text\nsrc/functrans/\n(.*?)```", text, re.DOTALL)[1]
    rooms, found = [], set()  # rooms: (indentation, name), from outside to inside
    for line in block.splitlines():
        indent = len(line) - len(line.lstrip())
        while rooms and rooms[-1][0] >= indent:
            rooms.pop()
        if room := re.match(r"\s*(\w+)/", line):
            rooms.append((indent, room[1]))
        path = "/".join(name for _, name in rooms)
        found |= {f"{path}/{name}".lstrip("/") for name in re.findall(r"\b\w+\.py\b", line)}
    return found


def test_every_module_is_on_the_map_in_its_room():
    there = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if path.name != "__init__.py"
    }
    assert modules_on_the_map() == there


def test_no_two_modules_define_a_class_under_one_name():
    homes = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(path.relative_to(PACKAGE).as_posix())
    assert not {name: paths for name, paths in homes.items() if len(set(paths)) > 1}
