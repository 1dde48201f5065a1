-- A database another program made but never gave tables: version 0, one foreign table.
CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT);
INSERT INTO notes (text) VALUES ('keep me');
