-- Files of batches. Their bytes are in the storage that `place` names, under the id.
CREATE TABLE stored_files (
  id TEXT COLLATE "C" PRIMARY KEY,
  workspace_id TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
  purpose TEXT COLLATE "C" NOT NULL CHECK (purpose IN ('batch', 'batch_output')),
  filename TEXT COLLATE "C" NOT NULL,
  bytes BIGINT NOT NULL,
  place TEXT COLLATE "C" NOT NULL,
  -- 0 until its bytes are stored. It counts for the quota from the beginning.
  is_stored BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX stored_files_by_workspace ON stored_files (workspace_id, created_at, id);
CREATE INDEX stored_files_by_expiry ON stored_files (expires_at);
