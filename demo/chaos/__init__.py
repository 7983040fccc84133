"""`make chaos`: an Airflow and its database die, hang, and starve at random, while deliveries and tasks continue."""
