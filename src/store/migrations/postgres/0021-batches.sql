CREATE TABLE batches (
  id TEXT COLLATE "C" PRIMARY KEY,
  workspace_id TEXT COLLATE "C" NOT NULL REFERENCES workspaces (id),
  key_id TEXT COLLATE "C" NOT NULL,
  endpoint TEXT COLLATE "C" NOT NULL,
  input_file_id TEXT COLLATE "C" NOT NULL,
  input_bytes BIGINT NOT NULL,
  -- The storage of the input file. Only processes that have it run the batch.
  place TEXT COLLATE "C" NOT NULL,
  completion_window TEXT COLLATE "C" NOT NULL,
  metadata TEXT COLLATE "C",
  state TEXT COLLATE "C" NOT NULL CHECK (
    state IN ('validating', 'in_progress', 'cancelling', 'finalizing', 'completed', 'failed', 'expired', 'cancelled')
  ),
  -- The state that follows when its files have been written.
  ending TEXT COLLATE "C",
  -- 0 until the input file has been checked.
  lines BIGINT NOT NULL,
  -- Set when it has ended. Until then they are counted.
  completed_lines BIGINT NOT NULL,
  failed_lines BIGINT NOT NULL,
  errors TEXT COLLATE "C",
  -- Why no line is run now.
  pause TEXT COLLATE "C",
  -- No line is run before.
  resume_at BIGINT NOT NULL,
  output_file_id TEXT COLLATE "C",
  error_file_id TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  in_progress_at BIGINT,
  finalizing_at BIGINT,
  cancelling_at BIGINT,
  ended_at BIGINT,
  -- Until then, only the process that has claimed it checks it or writes its files. Each claim has a number.
  lease_until BIGINT NOT NULL,
  claims BIGINT NOT NULL,
  -- 1 while there may be ranges and results of it.
  has_lines BIGINT NOT NULL
);
CREATE INDEX batches_by_workspace ON batches (workspace_id, created_at, id);
CREATE INDEX batches_to_process ON batches (created_at, id) WHERE has_lines = 1;
CREATE INDEX batches_by_end ON batches (ended_at) WHERE has_lines = 0;
CREATE INDEX batches_by_input_file ON batches (input_file_id);

-- Consecutive lines of an input file, which one process runs at a time.
CREATE TABLE batch_ranges (
  batch_id TEXT COLLATE "C" NOT NULL REFERENCES batches (id),
  first_line BIGINT NOT NULL,
  lines BIGINT NOT NULL,
  byte_start BIGINT NOT NULL,
  byte_end BIGINT NOT NULL,
  is_done BIGINT NOT NULL,
  lease_until BIGINT NOT NULL,
  claims BIGINT NOT NULL,
  PRIMARY KEY (batch_id, first_line)
);
CREATE INDEX batch_ranges_open ON batch_ranges (batch_id, lease_until, first_line) WHERE is_done = 0;

-- `stored`: the answer is kept, and its ledger row may not be settled yet.
CREATE TABLE batch_results (
  batch_id TEXT COLLATE "C" NOT NULL REFERENCES batches (id),
  line BIGINT NOT NULL,
  state TEXT COLLATE "C" NOT NULL CHECK (state IN ('stored', 'completed', 'failed')),
  request_id TEXT COLLATE "C" NOT NULL,
  -- Whose journal has the row of the request.
  owner TEXT COLLATE "C" NOT NULL,
  -- A line of the output or the error file.
  body TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (batch_id, line)
);
CREATE INDEX batch_results_by_state ON batch_results (batch_id, state);
