# SPDX-License-Identifier: Apache-2.0
"""Files of results, whole or absent, in all formats."""
