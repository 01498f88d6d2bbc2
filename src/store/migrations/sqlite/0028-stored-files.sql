-- Files of batches. Their bytes are in the storage that `place` names, under the id.
CREATE TABLE stored_files (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  purpose TEXT NOT NULL CHECK (purpose IN ('batch', 'batch_output')),
  filename TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  place TEXT NOT NULL,
  -- 0 until its bytes are stored. It counts for the quota from the beginning.
  is_stored INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX stored_files_by_workspace ON stored_files (workspace_id, created_at, id);
CREATE INDEX stored_files_by_expiry ON stored_files (expires_at);
