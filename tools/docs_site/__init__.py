"""The documentation site: its generated pages and its build. `python -m tools.docs_site` builds it.

`subjects` reads what has arguments off the code, `rules` finds their rules in docs/service.md, `reference` writes the
pages, `pages` brings them and docs/ together, `extension` is what Sphinx loads, `links` checks what was built.
"""
