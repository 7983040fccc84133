"""Programs for those who work on the provider: generators and set-up. None of it is part of the package."""
