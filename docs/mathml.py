"""Formulas as MathML, which browsers show by themselves: the pages need no network."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def render(translator, node):
    as_block = isinstance(node, nodes.math_block)
    formula = tex2mathml(node.astext(), as_block=as_block)
    translator.body.append(f'<div class="math">{formula}</div>' if as_block else formula)
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (render, None), (render, None))
    return {"parallel_read_safe": True}
