"""`make scale`: many waiting jobs on two of each of Airflow's components, some of which die during the run."""
