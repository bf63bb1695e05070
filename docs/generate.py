"""The pages that follow from something else: docstrings in full, and the notebooks.

They are written to docs/api and docs/notebooks, which are not stored. docs/reference.md says in which
group a name of functrans belongs; a name that it does not have is in the last one.
"""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import functrans

DOCS = Path(__file__).parent
NOTEBOOKS = DOCS.parent / "notebooks"
INTERNAL = {"core", "graph", "ops", "interpreters", "transforms", "compiler", "surface"}
ELSEWHERE = {"torch"}  # it has a reference of its own
HEADING = re.compile(r"^## (.*)$", re.M)
FIRST_CELL = re.compile(r"^\| ((?:`[^`]+`(?:, )?)+) \|", re.M)
NAME = re.compile(r"`(\w+)([^`]*)`")


def public_modules():
    """Every module with an `__all__` that users import, by its full name."""
    found = {"functrans": functrans}
    paths = [(functrans.__path__, "functrans.")]
    while paths:
        path, prefix = paths.pop()
        for info in pkgutil.iter_modules(path, prefix):
            last = info.name.rpartition(".")[2]
            if last in INTERNAL | ELSEWHERE or last.startswith("_"):
                continue
            module = importlib.import_module(info.name)
            if not hasattr(module, "__all__"):
                continue
            found[info.name] = module
            if info.ispkg:
                paths.append((module.__path__, info.name + "."))
    return dict(sorted(found.items()))


def documented(module):
    """The names of a module whose docstrings are ours; of NumPy's names, those that are more."""
    names = (name for name in module.__all__ if not name.startswith("_"))
    return [name for name in names if is_ours(getattr(module, name))]


def is_ours(member):
    """Whether this is a function or class that we have written, and not another's under our roof."""
    module = getattr(inspect.unwrap(member), "__module__", None) if callable(member) else None
    return (module or "").startswith("functrans")


def groups():
    """The names of functrans under the headings of reference.md, and the rest."""
    text = (DOCS / "reference.md").read_text(encoding="utf-8")
    left = dict.fromkeys(documented(functrans))
    parts = HEADING.split(text)
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        cells = FIRST_CELL.findall(body)
        found = (name for cell in cells for name, _ in NAME.findall(cell))
        names = [name for name in dict.fromkeys(found) if name in left]
        if names and "functrans." not in title:
            yield title, names
            for name in names:
                left.pop(name, None)
    if left:
        yield "Other names", list(left)


def entry(module_name, name, member):
    """What autodoc is told about one name."""
    if inspect.isclass(member):
        kind = "exception" if issubclass(member, BaseException) else "class"
        members = "" if kind == "exception" else "   :members:\n   :inherited-members: tuple\n"
        return f".. auto{kind}:: {module_name}.{name}\n{members}"
    return f".. autofunction:: {module_name}.{name}\n"


def page(title, module, names, opening=""):
    lines = [title, "=" * len(title), "", opening, f".. currentmodule:: {module.__name__}", ""]
    lines += [entry(module.__name__, name, getattr(module, name)) for name in names]
    return "\n".join(lines)


def api_pages():
    """A page for each group of functrans, and for each other module: texts by names, in order."""
    pages = {
        re.sub(r"\W+", "-", title.lower()): page(title, functrans, names)
        for title, names in groups()
    }
    for name, module in public_modules().items():
        if name != "functrans" and documented(module):
            opening = f".. automodule:: {name}\n   :no-members:\n"
            pages[name] = page(name, module, documented(module), opening)
    return pages


def write_api_pages():
    """Write docs/api."""
    write(DOCS / "api", {f"{name}.rst": text for name, text in api_pages().items()})


def write_notebooks():
    """Write docs/notebooks: copies of the notebooks, with links that are right there."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in NOTEBOOKS.glob("*.ipynb")}
    write(DOCS / "notebooks", {name: with_pages(text) for name, text in texts.items()})


def with_pages(text):
    """The text of a notebook with links to pages here; to what is no page, the words without a link."""
    text = re.sub(r"\]\(\.\./(docs/?|README\.md)\)", "](../index.md)", text)
    text = text.replace("](../docs/", "](../")
    return re.sub(
        r"\[([^][]+)\]\(((?:\.\./)[^)#]+)([^)]*)\)",
        lambda link: link[0] if (DOCS / "notebooks" / link[2]).resolve().exists() else link[1],
        text,
    )


def write(folder, files):
    """Make a folder hold these files and no others; those that are right are left alone."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.name not in files:
            path.unlink()
    for name, text in files.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def read(app, docname, source):
    """Called with the text of every page, to change it into what it means here."""
    folder = (DOCS / docname).parent
    # Patterns in tables of contents for pages that are not there yet are left out.
    source[0] = re.sub(
        r"^[\w./-]+\*\n",
        lambda line: line[0] if list(folder.glob(f"{line[0].strip()}.*")) else "",
        source[0],
        flags=re.M,
    )
    # Here the notebooks are one folder nearer than in the repository.
    source[0] = source[0].replace("](../notebooks/", "](notebooks/")
    source[0] = source[0].replace("](../../notebooks/", "](../notebooks/")
    # A link that is called like a file there is called like its page here.
    source[0] = re.sub(r"\[([\w-]+\.md)\]\(\1((?:#[\w-]+)?)\)", r"[](\1\2)", source[0])
    if docname == "reference":
        in_order = "".join(f"api/{name}\n" for name in api_pages())
        source[0] = with_links(source[0]).replace("api/*\n", in_order)


def with_links(text):
    """reference.md with the names in its tables leading to their docstrings."""
    modules = public_modules()
    parts = re.split(r"^(## .*)$", text, flags=re.M)
    for i in range(2, len(parts), 2):
        inside = re.search(r"`(functrans\.[\w.]+)`", parts[i - 1])
        prefix = inside[1] if inside else "functrans"
        public = documented(modules[prefix]) if prefix in modules else []

        def link(match, prefix=prefix, public=public):
            name, rest = match.groups()
            return f"{{py:obj}}`{name}{rest} <{prefix}.{name}>`" if name in public else match[0]

        parts[i] = FIRST_CELL.sub(lambda cell, link=link: NAME.sub(link, cell[0]), parts[i])
    return "".join(parts)


def find_name(app, env, node, contnode):
    """A name that a docstring of a module mentions may be one of functrans itself."""
    if node.get("reftype") != "obj" or not hasattr(functrans, node["reftarget"]):
        return None
    node["reftarget"] = f"functrans.{node['reftarget']}"
    arguments = (env, node["refdoc"], app.builder, "obj", node["reftarget"], node, contnode)
    return env.domains["py"].resolve_xref(*arguments)


def read_docstring(app, what, name, obj, options, lines):
    """Our docstrings are plain text in which only backticks mean something: tell the parser so."""
    example = False
    for i, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example and not re.match(r"\*+\w+ :", line):
            parts = line.split("`")
            parts[::2] = [part.replace("*", r"\*") for part in parts[::2]]
            lines[i] = re.sub(r"(`[^`]+`)(?=\w)", r"\1\\ ", "`".join(parts))
