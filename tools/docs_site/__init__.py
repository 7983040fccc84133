# SPDX-License-Identifier: Apache-2.0
"""The documentation site: generated pages and the build. `python -m tools.docs_site` builds it.

`subjects` reads classes and their arguments from the code, `rules` finds their rules in sandbox/docs/service.md,
`reference` writes the pages, `pages` combines them with docs/, `extension` is the Sphinx extension, and `links` checks
the built site.
"""
