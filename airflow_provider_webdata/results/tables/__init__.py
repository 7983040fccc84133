"""Results files into tables: what the files hold, and how each kind of database takes it, in one transaction."""
