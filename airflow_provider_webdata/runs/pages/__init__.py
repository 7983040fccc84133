# SPDX-License-Identifier: Apache-2.0
"""Runs that read pages, and browser sessions."""
