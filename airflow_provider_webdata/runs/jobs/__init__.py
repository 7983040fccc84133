"""Long jobs: started once however many attempts the task makes, found again, waited for, and their result taken."""
