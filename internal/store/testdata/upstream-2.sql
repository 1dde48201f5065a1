-- Version 2 of the old daemon, the one it ended with, with rows.
CREATE TABLE IF NOT EXISTS operations (pubkey TEXT NOT NULL, namespace TEXT NOT NULL, id TEXT NOT NULL, state TEXT, is_terminal INTEGER NOT NULL DEFAULT 0, updated_at TEXT, data TEXT NOT NULL, PRIMARY KEY (pubkey, namespace, id));
CREATE TABLE IF NOT EXISTS config (pubkey TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (pubkey, key));
CREATE TABLE IF NOT EXISTS state_cache (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS displayed_notifications (id TEXT PRIMARY KEY, created_at TEXT NOT NULL DEFAULT (datetime('now')));
INSERT INTO operations VALUES ('aa', 'swap_out', 'swap-2', 'funded', 0, '2025-11-02T10:11:12Z', '{"id":"swap-2","state":"funded","isTerminal":false}');
INSERT INTO config VALUES ('aa', 'relays', '["wss://relay.example.org"]');
INSERT INTO displayed_notifications (id, created_at) VALUES ('review-1', '2025-11-02 10:11:12');
PRAGMA user_version = 2;
