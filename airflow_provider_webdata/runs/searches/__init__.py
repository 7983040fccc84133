"""Many searches at once: as many as the service takes, each paid for once, each failure by itself."""
