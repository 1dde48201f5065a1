-- A version after ours: a column more, a table we do not know, one of ours missing.
CREATE TABLE operations (pubkey TEXT NOT NULL, namespace TEXT NOT NULL, id TEXT NOT NULL, state TEXT, is_terminal INTEGER NOT NULL DEFAULT 0, updated_at TEXT, data TEXT NOT NULL, origin TEXT DEFAULT 'new', PRIMARY KEY (pubkey, namespace, id));
CREATE TABLE config (pubkey TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (pubkey, key));
CREATE TABLE later (id TEXT PRIMARY KEY);
INSERT INTO operations (pubkey, namespace, id, data) VALUES ('aa', 'swap_in', 'swap-3', '{}');
INSERT INTO later VALUES ('x');
PRAGMA user_version = 7;
