"""`make scale`: many waiting jobs on two of each Airflow component, some of which are killed during the run."""
