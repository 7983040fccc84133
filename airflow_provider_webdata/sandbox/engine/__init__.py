"""The engine behind the operations: the sandbox's web, scraping, searching, comparing, and reading of files.

Nothing here knows of calls and answers.
"""
