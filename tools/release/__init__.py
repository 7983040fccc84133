# SPDX-License-Identifier: Apache-2.0
"""The stages of a release. `python -m tools.release` runs them, here and in the workflow.

`build` builds both distributions twice, `check` judges their metadata, `wheels` installs them beside pinned versions of
Airflow, `sbom` lists what they were tested with, `provenance` says what they were built from, `site` adds the version
to the documentation, `notes` writes the release notes, and `tag` compares the tag with the version and the changelog.
"""
