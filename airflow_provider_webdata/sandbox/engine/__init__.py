"""What does the work behind the operations: the sandbox's web, scraping, searching, comparing, reading of files.

Nothing here knows of calls and answers.
"""
