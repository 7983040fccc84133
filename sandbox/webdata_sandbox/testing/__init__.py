# SPDX-License-Identifier: Apache-2.0
"""Pytest fixtures for testing DAGs: a sandbox, an inbox, and a connection to both.

This module imports nothing: pytest imports the plugin wherever this package is installed.
"""
