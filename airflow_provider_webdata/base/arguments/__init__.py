# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments while a DAG file is parsed, with the rules as data."""
