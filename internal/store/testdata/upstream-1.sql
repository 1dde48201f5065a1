-- Version 1 of the old daemon, with rows.
CREATE TABLE IF NOT EXISTS operations (pubkey TEXT NOT NULL, namespace TEXT NOT NULL, id TEXT NOT NULL, state TEXT, is_terminal INTEGER NOT NULL DEFAULT 0, updated_at TEXT, data TEXT NOT NULL, PRIMARY KEY (pubkey, namespace, id));
CREATE TABLE IF NOT EXISTS config (pubkey TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (pubkey, key));
CREATE TABLE IF NOT EXISTS state_cache (key TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO operations VALUES ('aa', 'swap_in', 'swap-1', 'claimed', 1, '2025-11-02T10:11:12.345678', '{"id":"swap-1","state":"claimed","isTerminal":true}');
INSERT INTO operations VALUES ('aa', 'order_trade', 'trade-1', NULL, 0, NULL, 'not json');
INSERT INTO config VALUES ('aa', 'mode', 'host');
INSERT INTO state_cache VALUES ('k', 'v');
PRAGMA user_version = 1;
