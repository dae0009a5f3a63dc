"""Messages to a table of PostgreSQL, by psycopg."""
