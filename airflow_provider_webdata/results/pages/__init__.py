# SPDX-License-Identifier: Apache-2.0
"""Pages: their text as documents, their previews, and rules that recognize substitute pages."""
