-- What the geocoder answered. key is a SHA-256 of what was asked, so it names no
-- place; kept_at is in seconds since 1970.
CREATE TABLE IF NOT EXISTS hostrd_geocoder_answers (
  key BLOB NOT NULL PRIMARY KEY CHECK (length(key) = 32),
  kept_at INTEGER NOT NULL,
  answer BLOB NOT NULL
);
