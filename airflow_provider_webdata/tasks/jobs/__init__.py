"""Long jobs: started once however often the task is tried, found again, waited for, and their result taken."""
