"""What the runs of a task saw: one file of pages for each run, and what of a new run's results is new or changed."""
