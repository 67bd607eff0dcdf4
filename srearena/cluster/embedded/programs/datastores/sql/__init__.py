"""What PostgreSQL and MySQL have in common here: tables in SQLite, statements, locks, and grids of output."""
