"""Code that several rooms need and no library has."""
