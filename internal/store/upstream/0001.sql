CREATE TABLE IF NOT EXISTS operations (
  pubkey TEXT NOT NULL,
  namespace TEXT NOT NULL,
  id TEXT NOT NULL,
  state TEXT,
  is_terminal INTEGER NOT NULL DEFAULT 0,
  updated_at TEXT,
  data TEXT NOT NULL,
  PRIMARY KEY (pubkey, namespace, id)
);
CREATE TABLE IF NOT EXISTS config (
  pubkey TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (pubkey, key)
);
CREATE TABLE IF NOT EXISTS state_cache (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
);
