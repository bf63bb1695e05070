"""Sphinx builds these pages: sphinx-build -W --keep-going -b html docs docs/_build

Markdown is read by MyST, notebooks with the outputs they are stored with. generate.py makes the pages that
follow from something else, those of the docstrings and of the notebooks, and mathml.py shows formulas.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import generate

import functrans

project = "functrans"
author = "the functrans developers"
copyright = author
version = release = functrans.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "mathml",
]
html_math_renderer = "mathml"
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "off"
nb_merge_streams = True

default_role = "py:obj"  # `name` in a docstring is a link if there is such a name, and code if not
napoleon_google_docstring = False
napoleon_use_rtype = False
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True  # np.float64, and not <class 'numpy.float64'>
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

html_theme = "pydata_sphinx_theme"
html_title = "functrans"
html_static_path = ["_static"]
html_css_files = ["functrans.css"]
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
html_theme_options = {
    "show_prev_next": True,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
}
html_sidebars = {"index": [], "changelog": [], "gotchas": []}

generate.write_notebooks()
generate.write_api_pages()


def setup(app):
    app.connect("source-read", generate.read)
    app.connect("missing-reference", generate.find_name)
    app.connect("autodoc-process-docstring", generate.read_docstring, priority=100)
