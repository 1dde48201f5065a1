CREATE TABLE IF NOT EXISTS displayed_notifications (
  id TEXT PRIMARY KEY,
  created_at TEXT NOT NULL DEFAULT (datetime('now'))
);
