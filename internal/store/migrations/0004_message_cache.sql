-- Decrypted private messages of each account, encrypted again with a key that rests
-- with the secrets (spec 60 §11.1): data is NULL exactly where the message of that
-- gift wrap cannot be decrypted by anybody.
CREATE TABLE IF NOT EXISTS hostrd_message_cache (
  pubkey TEXT NOT NULL,
  wrap_id TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('rumor', 'undecryptable')),
  data BLOB CHECK ((data IS NULL) = (state = 'undecryptable')),
  PRIMARY KEY (pubkey, wrap_id)
);
-- When an account's messages were last fetched to the end, and when without a lower
-- bound; both in seconds since 1970.
CREATE TABLE IF NOT EXISTS hostrd_message_cache_marks (
  pubkey TEXT NOT NULL PRIMARY KEY,
  completed_at INTEGER NOT NULL,
  full_at INTEGER NOT NULL
) WITHOUT ROWID;
