-- For each account the name of the seed backup that was last found to hold the local
-- seed. It gives nothing of the seed away.
CREATE TABLE IF NOT EXISTS hostrd_seed_marks (
  pubkey TEXT NOT NULL PRIMARY KEY,
  mark TEXT NOT NULL
) WITHOUT ROWID;
