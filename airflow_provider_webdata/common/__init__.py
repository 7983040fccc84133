"""What several rooms need and no library has."""
