"""One file per page: what it asks for, and what its template is given."""
