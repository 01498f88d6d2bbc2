CREATE TABLE batches (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  key_id TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  input_file_id TEXT NOT NULL,
  input_bytes INTEGER NOT NULL,
  -- The storage of the input file. Only processes that have it run the batch.
  place TEXT NOT NULL,
  completion_window TEXT NOT NULL,
  metadata TEXT,
  state TEXT NOT NULL CHECK (
    state IN ('validating', 'in_progress', 'cancelling', 'finalizing', 'completed', 'failed', 'expired', 'cancelled')
  ),
  -- The state that follows when its files have been written.
  ending TEXT,
  -- 0 until the input file has been checked.
  lines INTEGER NOT NULL,
  -- Set when it has ended. Until then they are counted.
  completed_lines INTEGER NOT NULL,
  failed_lines INTEGER NOT NULL,
  errors TEXT,
  -- Why no line is run now.
  pause TEXT,
  -- No line is run before.
  resume_at INTEGER NOT NULL,
  output_file_id TEXT,
  error_file_id TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  in_progress_at INTEGER,
  finalizing_at INTEGER,
  cancelling_at INTEGER,
  ended_at INTEGER,
  -- Until then, only the process that has claimed it checks it or writes its files. Each claim has a number.
  lease_until INTEGER NOT NULL,
  claims INTEGER NOT NULL,
  -- 1 while there may be ranges and results of it.
  has_lines INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX batches_by_workspace ON batches (workspace_id, created_at, id);
CREATE INDEX batches_to_process ON batches (created_at, id) WHERE has_lines = 1;
CREATE INDEX batches_by_end ON batches (ended_at) WHERE has_lines = 0;
CREATE INDEX batches_by_input_file ON batches (input_file_id);

-- Consecutive lines of an input file, which one process runs at a time.
CREATE TABLE batch_ranges (
  batch_id TEXT NOT NULL REFERENCES batches (id),
  first_line INTEGER NOT NULL,
  lines INTEGER NOT NULL,
  byte_start INTEGER NOT NULL,
  byte_end INTEGER NOT NULL,
  is_done INTEGER NOT NULL,
  lease_until INTEGER NOT NULL,
  claims INTEGER NOT NULL,
  PRIMARY KEY (batch_id, first_line)
) STRICT, WITHOUT ROWID;
CREATE INDEX batch_ranges_open ON batch_ranges (batch_id, lease_until, first_line) WHERE is_done = 0;

-- `stored`: the answer is kept, and its ledger row may not be settled yet.
CREATE TABLE batch_results (
  batch_id TEXT NOT NULL REFERENCES batches (id),
  line INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('stored', 'completed', 'failed')),
  request_id TEXT NOT NULL,
  -- Whose journal has the row of the request.
  owner TEXT NOT NULL,
  -- A line of the output or the error file.
  body TEXT NOT NULL,
  PRIMARY KEY (batch_id, line)
) STRICT;
CREATE INDEX batch_results_by_state ON batch_results (batch_id, state);
