-- Events whose id and signature were found good. key is the SHA-256 of both, so
-- keys are spread evenly; verified_at is in seconds since 1970.
CREATE TABLE IF NOT EXISTS hostrd_verified_events (
  key BLOB NOT NULL PRIMARY KEY CHECK (length(key) = 32),
  verified_at INTEGER NOT NULL
) WITHOUT ROWID;
