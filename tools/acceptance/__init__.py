# SPDX-License-Identifier: Apache-2.0
"""A run of every operator, sensor, and hook method against a server. See docs/contributing/acceptance.md."""
