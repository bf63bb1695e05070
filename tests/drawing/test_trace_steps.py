"""trace_steps: what the pictures say is what the tape did."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import functrans
from functrans import custom_vjp, grad, trace_steps
from functrans import numpy as fnp
from tests.support.browser import needs_browser, run_in_page

W = np.array([[0.1, 0.2], [0.3, -0.4]])
X = np.array([1.0, 2.0])


def loss(x, w):
    h = np.tanh(w @ x)
    if h[0] > 0:
        h = h * 2
    return np.sum(h**2) + x[0] * x[1]


def titles(steps):
    return [step.title for step in steps]


def boxes(svg):
    """For each box of a picture its texts by role, its outline, and whether it is faint."""
    space = "{http://www.w3.org/2000/svg}"
    found = []
    for group in ElementTree.fromstring(svg).iter(f"{space}g"):
        if group.get("class") == "box":
            texts = {}
            for text in group.iter(f"{space}text"):
                texts.setdefault(text.get("class"), []).append(text.text or "")
            frame = group.find(f"{space}rect")
            faint = group.get("opacity", "1") != "1"
            found.append((texts, float(frame.get("stroke-width")) > 2, faint))
    return found


def test_the_steps_of_a_small_function():
    steps = trace_steps(lambda x, y: np.sin(x) * y, 0.0, 2.0)
    assert titles(steps) == [
        "start: the inputs have values",
        "forward: a = sin(x) is 0",
        "forward: b = multiply(a, y) is 0",
        "backward: start from the result b, whose gradient is 1",
        "backward: multiply(a, y) hands 2 to a, 0 to y",
        "backward: sin(x) hands 2 to x",
    ]
    assert len(steps) == 6 and repr(steps) == "<Steps: 2 forward, 3 backward>"
    assert [step.phase for step in steps[:3]] == ["start", "forward", "forward"]
    assert steps[-1].title == "backward: sin(x) hands 2 to x"
    with pytest.raises(IndexError):
        steps[6]


def test_value_and_gradients_are_those_of_grad_and_of_differences():
    steps = trace_steps(loss, X, W)
    assert steps.value == loss(X, W)
    for found, expected in zip(steps.gradients, grad(loss, (0, 1))(X, W), strict=True):
        np.testing.assert_array_equal(found, expected)
    eps = 1e-6
    for k in range(2):
        unit = eps * np.eye(2)[k]
        difference = (loss(X + unit, W) - loss(X - unit, W)) / (2 * eps)
        assert abs(steps.gradients[0][k] - difference) < 1e-8


def test_gradients_add_up_on_the_way():
    found = [t for t in titles(trace_steps(loss, X, W)) if " to x" in t]
    assert [t.partition(" hands ")[2] for t in found] == [
        "[0 1] to x",
        "[2 0] to x (now [2 1])",
        "[[2.907 5.815] [-2.907 -5.815]] to w, [-0.5815 1.744] to x (now [1.419 2.744])",
    ]


def test_the_pictures_show_values_gradients_and_the_active_step():
    steps = trace_steps(lambda x, y: np.sin(x) * y, 0.5, 2.0)
    x, y, a, b = boxes(steps[1].svg)
    assert x[0]["value"] == ["= 0.5"] and not x[1] and not x[2]
    assert a[0]["name"] == ["a = sin(x)"] and a[0]["value"] == ["= 0.4794"] and a[1]
    assert b[2] and "value" not in b[0]
    x, y, a, b = boxes(steps[4].svg)
    assert b[1] and not a[1] and b[0]["gradient"] == ["∂ 1"]
    assert a[0]["gradient"] == ["∂ 2"] and y[0]["gradient"] == ["∂ 0.4794"]
    assert x[0]["gradient"] == [""]
    x, *_ = boxes(steps[5].svg)
    assert x[0]["gradient"] == [f"∂ {2 * np.cos(0.5):.4g}"]


def test_nothing_moves_between_steps():
    steps = trace_steps(loss, X, W)
    frames = [re.findall(r'<rect x="\S+" y="\S+" width="\S+"', step.svg) for step in steps]
    assert len(set(map(tuple, frames))) == 1


def test_the_lines_of_the_code_are_named():
    state = trace_steps(loss, X, W)[2]._state
    assert "in loss: `h = np.tanh(w @ x)`" in state.location


def test_the_rules_are_those_of_the_library():
    @custom_vjp
    def straight_through(x):
        return np.round(x)

    straight_through.defvjp(lambda x: (np.round(x), None), lambda _, g: (10 * g,))
    steps = trace_steps(lambda x: straight_through(x) ** 2, 1.4)
    assert steps.value == 1.0 and steps.gradients == (20.0,)


def test_operations_with_several_results_and_constants():
    def f(matrix):
        values, vectors = np.linalg.eigh(matrix)
        return np.sum(values**3) + 0 * vectors[0, 0]

    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    steps = trace_steps(f, matrix)
    # The derivative of tr A³ is 3 A².
    gradient = steps.gradients[0]  # one triangle is read
    np.testing.assert_allclose((gradient + gradient.T) / 2, 3 * matrix @ matrix, rtol=1e-12)
    assert any("eigh" in title and "hands" in title for title in titles(steps))

    steps = trace_steps(lambda x: np.sum(np.where(x > 0, x, 2 * x)), np.array([1.0, -1.0]))
    np.testing.assert_array_equal(steps.gradients[0], [1.0, 2.0])
    (mask,) = [k for k, box in enumerate(boxes(steps[-1].svg)) if "greater" in box[0]["name"][0]]
    assert f'data-tail="{mask}"' in steps[-1].svg  # where takes the mask


def test_assignment_loops_and_nested_transforms():
    def f(x):
        y = fnp.zeros(3)
        for k in range(3):
            y[k] = x[k] ** 2
        return np.sum(y) + grad(lambda z: z**3)(x[0])

    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(trace_steps(f, x).gradients[0], [2.0 + 6.0, 4.0, 6.0])

    def scanned(x):
        return functrans.fori_loop(0, 3, lambda _, y: y * x, 1.0)

    assert trace_steps(scanned, 2.0).gradients == (12.0,)


def test_pytrees_and_integers():
    steps = trace_steps(lambda p, n: p["a"] ** n * p["b"][0], {"a": 2.0, "b": [3.0]}, 2)
    assert steps.gradients == ({"a": 12.0, "b": [4.0]}, None)
    assert boxes(steps[0].svg)[1][0]["name"] == ["p_b_0"]


def test_a_function_that_does_not_depend_on_its_argument():
    steps = trace_steps(lambda x: 3.0, 1.0)
    assert steps.value == 3.0 and steps.gradients == (0.0,)
    assert titles(steps) == ["start: the inputs have values"]
    assert steps.html and boxes(steps[0].svg)


def test_large_values_are_described():
    steps = trace_steps(lambda x: np.sum(x), np.arange(10.0))
    assert steps[1].title == "forward: a = sum(x) is 45"
    assert boxes(steps[0].svg)[0][0]["value"] == ["= 0 … 9"]


def test_errors():
    with pytest.raises(
        TypeError, match="trace_steps needs a function that returns one real number"
    ):
        trace_steps(np.sin, np.ones(2))
    with pytest.raises(TypeError, match="trace_steps: no argument is a floating point array"):
        trace_steps(lambda n: n * 1.0, 3)
    with pytest.raises(TypeError, match="trace_steps needs a function, not a float"):
        trace_steps(1.0)
    with pytest.raises(ValueError, match=r"saved as .html, .svg, according to the suffix"):
        trace_steps(np.sin, 1.0).save("steps.pdf")


def test_files(tmp_path):
    steps = trace_steps(np.sin, 1.0)
    steps.save(tmp_path / "steps.html")
    steps.save(tmp_path / "steps.svg")
    assert (tmp_path / "steps.html").read_text(encoding="utf-8") == steps.html
    assert (tmp_path / "steps.svg").read_text(encoding="utf-8") == steps[-1].svg


def test_the_page_needs_no_network_and_cannot_be_broken_by_names():
    def f(x):
        return x * 2  # </script><script>alert(1)</script>

    page = trace_steps(f, 1.0).html
    assert page.count("<script") == 1 and page.count("</script>") == 1
    addresses = set(re.findall(r"https?://[^\s\"']+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert "src=" not in page and "href=" not in page and "@import" not in page


SHOWN = """
  const read = (document) => [...document.querySelectorAll("g.box")].map((box) => ({
    name: box.querySelector(".name").textContent,
    value: box.querySelector(".value").textContent,
    shown: box.querySelector(".value").getAttribute("visibility") === "visible",
    gradient: box.querySelector(".gradient").textContent,
    active: box.querySelector("rect").getAttribute("stroke-width") === "3",
  }));
"""


def expected(step):
    return [
        {
            "name": texts["name"][0],
            "value": texts.get("value", [""])[0],
            "gradient": texts.get("gradient", [""])[0],
            "active": active,
            "shown": not faint,
        }
        for texts, active, faint in boxes(step.svg)
    ]


def same(found, step):
    for box, wanted in zip(found, expected(step), strict=True):
        if not wanted["shown"]:
            wanted["value"] = box["value"]  # it is there, but hidden
        assert box == wanted


@needs_browser
def test_in_a_browser_the_page_shows_every_step(tmp_path):
    steps = trace_steps(loss, X, W)
    script = f"""{SHOWN}
      const title = () => document.getElementById("title").textContent;
      const states = [[title(), read(document)]];
      const next = document.getElementById("forward");
      while (!next.disabled) {{ next.click(); states.push([title(), read(document)]); }}
      const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", {{ key }}));
      const after = [];
      for (const key of ["ArrowLeft", "ArrowLeft", "ArrowRight", "Home", "ArrowLeft", "End"]) {{
        press(key);
        after.push(document.getElementById("count").textContent);
      }}
      const slider = document.getElementById("slider");
      slider.value = 3;
      slider.dispatchEvent(new Event("input"));
      after.push(document.getElementById("count").textContent);
      document.getElementById("back").click();
      after.push(document.getElementById("count").textContent);
      return {{ states, after }};
    """
    found = run_in_page(steps.html, script, tmp_path)
    assert [title for title, _ in found["states"]] == titles(steps)
    for (_, state), step in zip(found["states"], steps, strict=True):
        same(state, step)
    n = len(steps)
    places = [n - 1, n - 2, n - 1, 1, 1, n, 4, 3]
    assert found["after"] == [f"{place} / {n}" for place in places]


@needs_browser
def test_in_a_notebook_the_page_works_in_its_frame(tmp_path):
    steps = trace_steps(lambda x, y: np.sin(x) * y, 0.5, 2.0)
    page = f"<!DOCTYPE html><body>{steps._repr_html_()}</body>"
    script = f"""{SHOWN}
      const inside = document.querySelector("iframe").contentDocument;
      for (let k = 0; k < 4; k++) inside.getElementById("forward").click();
      return [inside.getElementById("title").textContent, read(inside)];
    """
    title, state = run_in_page(page, script, tmp_path)
    assert title == steps[4].title
    same(state, steps[4])


@needs_browser
def test_in_a_browser_texts_stay_in_their_boxes(tmp_path):
    steps = trace_steps(loss, X, W)
    script = """
      document.getElementById("slider").value = 1000;
      document.getElementById("slider").dispatchEvent(new Event("input"));
      const outside = [];
      for (const box of document.querySelectorAll("g.box")) {
        const frame = box.querySelector("rect").getBBox();
        for (const text of box.querySelectorAll("text")) {
          const b = text.getBBox();
          const fits = b.x >= frame.x && b.x + b.width <= frame.x + frame.width
            && b.y >= frame.y && b.y + b.height <= frame.y + frame.height;
          if (!fits && text.textContent) outside.push(text.textContent);
        }
      }
      return outside;
    """
    assert run_in_page(steps.html, script, tmp_path) == []
