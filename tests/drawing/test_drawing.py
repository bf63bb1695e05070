"""Pictures of graphs: what is in them, and that nothing lies on anything else."""

import gc
import weakref
from contextlib import contextmanager
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans
from functrans import grad, make_graph, vmap
from functrans.core.primitive import KINDS, PRIMITIVES
from functrans.drawing.diagram import COLORS, Diagram
from functrans.drawing.picture import Drawing
from functrans.graph.scopes import CallStack
from tests.support.browser import needs_browser, run_in_page


def layer(w, b, x):
    return np.tanh(w @ x + b)


def net(params, x):
    for w, b in params:
        x = layer(w, b, x)
    return np.mean(x**2)


def weights(depth):
    random = np.random.default_rng(0)
    return [(random.normal(size=(3, 3)), random.normal(size=3)) for _ in range(depth)]


X = np.ones(3)


def names_of(drawing):
    return [box.lines[0] for box in drawing.diagram.boxes]


def kinds_of(drawing):
    return [box.kind for box in drawing.diagram.boxes]


# Geometry.


def check_geometry(drawing):
    """No box or label lies on another, every edge leads down and runs through no box."""
    layout, diagram = drawing.layout, drawing.diagram
    things = [*layout.boxes, *filter(None, layout.labels)]
    assert len(layout.boxes) == len(diagram.boxes)
    in_rows = sorted(things, key=lambda thing: thing.y - thing.height / 2)
    for k, a in enumerate(in_rows):
        for b in in_rows[k + 1 :]:
            if b.y - b.height / 2 >= a.y + a.height / 2:
                break
            assert abs(a.x - b.x) >= (a.width + b.width) / 2, (a, b)
    for thing in things:
        assert thing.x - thing.width / 2 > 0 and thing.x + thing.width / 2 < layout.width
        assert thing.y - thing.height / 2 > 0 and thing.y + thing.height / 2 < layout.height
    x, y, width, height = np.array(layout.boxes).reshape(-1, 4).T
    left, right, top, bottom = x - width / 2, x + width / 2, y - height / 2, y + height / 2
    for value, ways in zip(diagram.values, layout.edges, strict=True):
        assert [head for head, _ in ways] == list(value.heads)
        for head, way in ways:
            tail_box, head_box = layout.boxes[value.tail], layout.boxes[head]
            assert way[0] == (tail_box.x, tail_box.y + tail_box.height / 2)
            assert way[-1] == (head_box.x, head_box.y - head_box.height / 2)
            assert way[0][1] < way[-1][1]
            for (x0, y0), (x1, y1) in pairwise(way):
                assert y0 <= y1
                # A curve between two corners stays in the rectangle that they span.
                apart = (
                    (max(x0, x1) <= left) | (min(x0, x1) >= right) | (y1 <= top) | (y0 >= bottom)
                )
                assert apart.all(), (value, head)


@st.composite
def diagrams(draw):
    diagram = Diagram()
    count = draw(st.integers(0, 25))
    for number in range(count):
        text = "x" * draw(st.integers(0, 30))
        diagram.box((text,) * draw(st.integers(1, 3)), draw(st.sampled_from(sorted(COLORS))))
        for tail in draw(st.lists(st.integers(0, max(number - 1, 0)), max_size=4)):
            if tail < number:
                label = draw(st.sampled_from(["", "[3]", "float32[10,20,30]"]))
                diagram.edge(tail, number, label, value=draw(st.integers(0, 1)))
    return diagram


@settings(max_examples=100)
@given(diagrams())
def test_nothing_overlaps_and_edges_lead_down(diagram):
    drawing = Drawing(diagram)
    check_geometry(drawing)
    ElementTree.fromstring(drawing.svg)


GRAPHS = {
    "net": lambda: make_graph(net)(weights(3), X),
    "gradient": lambda: make_graph(grad(net))(weights(5), X),
    "hessian": lambda: make_graph(functrans.hessian(lambda x: np.sum(np.sin(x) * x[0])))(X),
    "lanes": lambda: make_graph(vmap(grad(net), in_axes=(None, 0)))(weights(2), np.ones((4, 3))),
    "many": lambda: make_graph(grad(net))(weights(40), X),
    "loop": lambda: make_graph(
        lambda x: functrans.scan(lambda c, r: (c * r, c + r), x, np.outer(x, x))
    )(X),
    "constant": lambda: make_graph(lambda x: (x, 1.0, np.arange(3.0)))(X),
    "unused": lambda: make_graph(lambda x, y: x + 1)(X, X),
    "nothing": lambda: make_graph(lambda: ())(),
    "factorization": lambda: make_graph(lambda a: np.linalg.qr(a))(np.eye(3)),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("collapse", ["auto", True])
def test_pictures_of_graphs(name, collapse):
    drawing = GRAPHS[name]().draw(collapse=collapse)
    check_geometry(drawing)
    ElementTree.fromstring(drawing.svg)


def test_long_chains_are_straight():
    def chain(x):
        for _ in range(30):
            x = np.sin(x)
        return x

    layout = make_graph(chain)(1.0).draw().layout
    assert max(box.x for box in layout.boxes) - min(box.x for box in layout.boxes) < 1e-6


def test_everything_has_a_box_if_it_is_asked_for():
    drawing = make_graph(grad(net))(weights(20), X).draw(collapse=False)
    assert len(drawing.diagram.boxes) > 200
    check_geometry(drawing)


# The contents of boxes.


def test_boxes_edges_and_kinds():
    def f(x, w):
        y = np.sum((w @ x).reshape(3, 1) * np.arange(3.0))
        return functrans.cond(y > 0, np.sin, np.cos, y)

    drawing = make_graph(f)(X, np.eye(3)).draw()
    kinds = dict(zip(names_of(drawing), kinds_of(drawing), strict=True))
    assert kinds["x"] == kinds["w"] == "input" and kinds["output"] == "output"
    assert kinds["constant0"] == "constant"
    assert kinds["a = matmul(w, x)"] == "linear algebra"
    assert kinds["b = reshape(a)"] == "shape"
    assert kinds["c = multiply(b, constant0)"] == "elementwise"
    assert kinds["d = sum(c)"] == "reduction"
    assert any(kind == "control flow" for kind in kinds.values())
    boxes = names_of(drawing)
    edges = {
        (boxes[value.tail], boxes[head], value.label)
        for value in drawing.diagram.values
        for head in value.heads
    }
    assert ("w", "a = matmul(w, x)", "[3,3]") in edges
    assert ("a = matmul(w, x)", "b = reshape(a)", "[3]") in edges
    assert ("b = reshape(a)", "c = multiply(b, constant0)", "[3,1]") in edges
    text = drawing.svg
    for kind in set(kinds.values()):
        assert COLORS[kind][0] in text and f">{kind}</text>" in text  # in the box and in the legend
    assert ">[3,1]</text>" in text


def test_every_primitive_has_a_kind_with_a_color():
    assert set(KINDS) <= set(COLORS)
    found = {name: primitive.kind for name, primitive in PRIMITIVES.items()}
    assert found["tanh"] == "elementwise" and found["greater"] == "elementwise"
    assert found["index"] == found["transpose"] == found["concatenate"] == "shape"
    assert found["max"] == found["cumsum"] == "reduction"
    assert found["svd"] == found["einsum"] == found["fft"] == "linear algebra"


def test_numbers_are_written_where_they_are_used():
    drawing = make_graph(lambda x: (2.0 * x, 3.0))(X).draw()
    assert names_of(drawing) == ["a = multiply(2.0, x)", "3.0", "output 0", "output 1", "x"]
    values = {v.tail: v for v in drawing.diagram.values}
    assert values[1].heads == (3,) and values[1].label == "[]"


def test_a_value_that_is_returned_twice_has_two_boxes():
    drawing = make_graph(lambda x: (2 * x,) * 2)(X).draw()
    assert names_of(drawing) == ["a = multiply(2, x)", "output 0", "output 1", "x"]
    assert (0, (1, 2), "[3]") in drawing.diagram.values


def test_dtypes_are_named_if_they_are_not_the_usual_one():
    drawing = make_graph(lambda x: x.astype(np.float32) > 0)(X).draw()
    assert {v.label for v in drawing.diagram.values} == {"[3]", "float32[3]", "bool[3]"}


def test_values_in_the_boxes():
    x = np.array([1.0, 4.0, 9.0])
    drawing = make_graph(lambda x: np.sum(np.sqrt(x)))(x).draw(show_values=(x,))
    lines = {box.lines[0]: box.lines[-1] for box in drawing.diagram.boxes}
    assert lines == {
        "x": "= [1 4 9]",
        "a = sqrt(x)": "= [1 2 3]",
        "b = sum(a)": "= 6",
        "output": "= 6",
    }
    graph = make_graph(lambda x: x)(x)
    with pytest.raises(ValueError, match="input 0 of the graph was traced as"):
        graph.draw(show_values=(np.ones(4),))
    with pytest.raises(ValueError, match="show_values has arguments"):
        graph.draw(show_values=(x, x))
    with pytest.raises(ValueError, match="show_values needs the arguments to run the graph on"):
        graph.draw(show_values=True)


def test_names_are_escaped():
    drawing = make_graph(lambda x: x["<b>&"] * 2.0)({"<b>&": X}).draw()
    diagram = Diagram()
    diagram.box(('<script> & "quotes"',), "input")
    for picture in (drawing, Drawing(diagram)):
        assert "<b>" not in picture.svg and "<script>" not in picture.svg
        ElementTree.fromstring(picture.svg)
    assert 'label="<script> & \\"quotes\\""' in Drawing(diagram).dot


def test_graphviz_text():
    text = make_graph(lambda x: np.sin(x) + x)(X).draw().dot
    assert text.startswith("digraph {") and text.rstrip().endswith("}")
    assert 'n0 [label="a = sin(x)" fillcolor="#fdf0c4"' in text
    assert 'n3 -> n0 [label="[3]"]' in text and text.count("->") == 4


# Calls as boxes.


def test_two_calls_of_one_function_are_two_boxes():
    graph = make_graph(net)(weights(3), X)
    drawing = graph.draw(collapse=True)
    assert [n for n in names_of(drawing) if n == "layer"] == ["layer"] * 3
    assert drawing.diagram.boxes[0].lines == ("layer", "3 operations → c")
    assert drawing.diagram.boxes[0].kind == "function"
    calls = {id(e.scope[1]) for e in graph.equations if len(e.scope) > 1}
    assert len(calls) == 3
    assert names_of(graph.draw(collapse=["layer"])) == names_of(drawing)
    assert names_of(graph.draw(collapse=1)) == names_of(drawing)
    assert "layer" not in names_of(graph.draw(collapse=False))
    assert names_of(graph.draw()) == names_of(graph.draw(collapse=False))
    outer = graph.draw(collapse="net")
    assert names_of(outer) == ["net", "output", "params", "x"]
    assert outer.diagram.values[0].label in ("[]", "6 arrays")


def test_depth_and_names_of_calls():
    def inner(x):
        return np.sin(x) + np.cos(x)

    def outer(x):
        return inner(x) * inner(2 * x)

    graph = make_graph(lambda x: outer(x) + outer(x * x))(X)
    assert names_of(graph.draw(collapse=1)).count("outer") == 2
    assert names_of(graph.draw(collapse=2)).count("inner") == 4
    assert names_of(graph.draw(collapse=("inner",))).count("inner") == 4


def test_helpers_of_the_standard_library_are_no_calls():
    @contextmanager
    def scope():
        yield

    @scope()
    def decorated(x):
        return sum(np.sin(part) for part in [x, 2 * x])

    graph = make_graph(lambda x: decorated(x))(X)
    named = [[call.name for call in equation.scope] for equation in graph.equations]
    assert named == [["<lambda>", "decorated"]] * 5


def test_the_backward_sweep_is_a_call():
    drawing = make_graph(grad(net))(weights(2), X).draw(collapse=True)
    boxes = names_of(drawing)
    assert "net" in boxes and "backward sweep" in boxes
    check_geometry(drawing)


def test_a_call_that_is_interrupted_is_several_boxes():
    def parts(x):
        x = np.cos(np.sin(x))
        yield x
        yield np.cos(np.sin(x))

    def f(x):
        generator = parts(x)
        a = next(generator)
        b = np.exp(a) * 2
        return b + next(generator) * b

    drawing = make_graph(f)(X).draw(collapse="parts")
    assert names_of(drawing).count("parts") == 2
    check_geometry(drawing)


@pytest.mark.parametrize("depth", [10, 60, 150])
def test_large_graphs_are_collapsed_until_they_can_be_read(depth):
    graph = make_graph(net)(weights(depth), X)
    boxes = graph.draw().diagram.boxes
    operations = [box for box in boxes if box.kind not in ("input", "output")]
    assert len(operations) <= 200
    # Everything is in a box once.
    inside = [int(b.lines[1].split()[0]) if b.kind == "function" else 1 for b in operations]
    assert sum(inside) == len(graph.equations)
    if depth == 10:
        assert "layer" not in {box.lines[0] for box in boxes}
    if depth == 150:
        assert [box.lines[0] for box in boxes].count("layer") == 150


def test_large_functions_without_calls_are_collapsed_by_runs():
    def flat(x):
        for k in range(300):
            x = np.sin(x) * k
        return x

    def repeated(x):
        for _ in range(600):
            x = np.sin(x)
        return x

    boxes = make_graph(flat)(X).draw().diagram.boxes
    assert len(boxes) == 202
    assert boxes[0].lines == ("sin, multiply", "3 operations → c")
    assert make_graph(repeated)(X).draw().diagram.boxes[0].lines == ("sin × 3", "3 operations → c")


def test_what_collapse_may_be():
    graph = make_graph(net)(weights(2), X)
    with pytest.raises(
        ValueError, match=r"names 'lier', but the functions that were called .* 'net'"
    ):
        graph.draw(collapse="lier")
    with pytest.raises(ValueError, match="collapse must be"):
        graph.draw(collapse=0)
    with pytest.raises(ValueError, match="collapse must be"):
        graph.draw(collapse=1.5)


def test_a_graph_does_not_keep_what_its_functions_held():
    class Held:
        pass

    seen = []

    def helper(x):
        held = Held()
        seen.append(weakref.ref(held))
        return np.sin(x)

    gc.disable()
    try:
        graph = make_graph(lambda x: helper(helper(x)))(X)
        assert len(graph.equations) == 2 and [ref() for ref in seen] == [None, None]
        seen.clear()
        with pytest.raises(functrans.errors.StagingError):
            make_graph(lambda x: float(helper(x)))(1.0)
    finally:
        gc.enable()
    assert CallStack(None, {}).at(None) == ()


def test_graphs_that_were_optimized_or_stored_are_drawn_too(tmp_path):
    traced = functrans.jit(grad(net), backend="numpy").trace(weights(2), X)
    traced.graph.save(tmp_path / "graph.zip")
    for graph in (traced.graph, functrans.load_graph(tmp_path / "graph.zip")):
        check_geometry(graph.draw())


# Files and notebooks.


def test_files_and_notebooks(tmp_path):
    graph = make_graph(np.sin)(X)
    drawing = graph.draw()
    assert repr(drawing) == "<Drawing of 3 boxes>"
    for suffix, text in {"svg": drawing.svg, "dot": drawing.dot}.items():
        drawing.save(tmp_path / f"graph.{suffix}")
        assert (tmp_path / f"graph.{suffix}").read_text(encoding="utf-8") == text
    drawing.save(str(tmp_path / "graph.html"))
    page = (tmp_path / "graph.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>") and drawing.svg in page
    with pytest.raises(ValueError, match=r"saved as .svg, .html, .dot, according to the suffix"):
        drawing.save(tmp_path / "graph.png")
    assert drawing._repr_svg_() == drawing.svg and drawing.svg in drawing._repr_html_()
    text = graph._repr_html_()
    assert drawing.svg in text and "a: float64[3] = sin(" in text


def test_pages_open_closed_calls():
    graph = make_graph(grad(net))(weights(150), X)
    drawing = graph.draw()
    titles = [title for title, _ in drawing.inside]
    assert titles == ["inside layer: 3 operations", "inside backward sweep: 901 operations"]
    one_layer, sweep = [inner for _, inner in drawing.inside]
    # The first of 150 calls that are alike, with the names that the graph's text has.
    assert names_of(one_layer)[:3] == [
        "a = matmul(params_0_0, x)",
        "b = add(a, params_0_1)",
        "c = tanh(b)",
    ]
    assert kinds_of(one_layer).count("input") == 3 and kinds_of(one_layer).count("output") == 1
    # The sweep is given hundreds of values, which have no boxes, and is closed in turn.
    assert len(sweep.diagram.boxes) <= 200 and sweep.inside
    page = graph._repr_html_()
    for _, inner in [*drawing.inside, *sweep.inside]:
        check_geometry(inner)
        assert inner.svg in page
    assert not make_graph(net)(weights(2), X).draw().inside


def test_values_in_closed_calls():
    drawing = make_graph(net)(weights(1), X).draw(collapse="layer", show_values=(weights(1), X))
    ((_, inner),) = drawing.inside
    assert all(box.lines[-1].startswith("= ") for box in inner.diagram.boxes)


@needs_browser
def test_in_a_browser_a_click_opens_a_call(tmp_path):
    page = make_graph(grad(net))(weights(150), X)._repr_html_()
    script = """
      const seen = () => [...document.querySelectorAll("svg")].filter((s) => s.checkVisibility()).length;
      const before = seen();
      document.querySelector("summary").click();
      return [document.querySelector("summary").textContent, before, seen()];
    """
    found = run_in_page(f"<!DOCTYPE html><body>{page}</body>", script, tmp_path)
    assert found == ["inside layer: 3 operations", 1, 2]


@needs_browser
def test_in_a_browser_texts_stay_in_their_boxes(tmp_path):
    """The widths that the layout assumes hold for a real font."""
    drawing = make_graph(grad(net))(weights(3), X).draw()
    script = """
      const outside = [];
      const boxes = [...document.querySelectorAll("g.box")];
      for (const box of boxes) {
        const frame = box.querySelector("rect").getBBox();
        for (const text of box.querySelectorAll("text")) {
          const b = text.getBBox();
          if (b.x < frame.x || b.x + b.width > frame.x + frame.width
            || b.y < frame.y || b.y + b.height > frame.y + frame.height)
            outside.push(text.textContent);
        }
      }
      return [boxes.length, outside];
    """
    found = run_in_page(f"<!DOCTYPE html><body>{drawing.svg}</body>", script, tmp_path)
    assert found == [len(drawing.diagram.boxes), []]
