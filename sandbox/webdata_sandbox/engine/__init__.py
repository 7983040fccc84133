# SPDX-License-Identifier: Apache-2.0
"""The engine behind the operations: web pages, scraping, search, comparison, and file parsing.

It is independent of HTTP requests and responses.
"""
