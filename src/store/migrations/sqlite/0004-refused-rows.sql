-- Rows that the ledger refuses for good. They are in no sum and no invoice. `content` is the row as JSON.
CREATE TABLE ledger_refused (
  request_id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  refused_at INTEGER NOT NULL,
  reason TEXT NOT NULL,
  content TEXT NOT NULL
) STRICT, WITHOUT ROWID;
