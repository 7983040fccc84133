"""What one wait makes of deliveries and polls: each check or job is decided on once, in order."""
