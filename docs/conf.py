# SPDX-License-Identifier: Apache-2.0
"""How Sphinx builds the site; `make docs` runs it on what `tools/docs_site` brings together."""

from __future__ import annotations

from airflow_provider_webdata import __version__
from airflow_provider_webdata.common.links import SITE

project = "airflow-provider-webdata"
release = version = __version__
root_doc = "index"
source_suffix = {".md": "markdown"}
extensions = ["myst_parser", "sphinx_copybutton", "tools.docs_site.extension"]

nitpicky = True
myst_enable_extensions = ["attrs_inline", "deflist"]
myst_heading_anchors = 5

html_baseurl = SITE
html_theme = "furo"
html_title = f"{project} {version}"
html_short_title = project
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
copybutton_exclude = ".linenos, .gp, .go"
