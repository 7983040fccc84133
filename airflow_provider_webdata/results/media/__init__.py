# SPDX-License-Identifier: Apache-2.0
"""Copies of media, which the service links for a limited time."""
