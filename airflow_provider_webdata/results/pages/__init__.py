"""What a page is: its text as a document, its preview, and pages that replace it."""
