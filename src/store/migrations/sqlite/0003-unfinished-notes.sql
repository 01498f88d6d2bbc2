-- The adjustment note whose rows are being added to the ledger, a few at a time so that other rows never wait long.
-- Nobody sees the note or its rows until it moves to `invoices`. There is at most one, since numbers have no gaps.
CREATE TABLE unfinished_notes (
  slot INTEGER PRIMARY KEY CHECK (slot = 1),
  number TEXT NOT NULL,
  kind TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  seller_abn TEXT NOT NULL,
  workspace_id TEXT NOT NULL,
  period TEXT NOT NULL,
  period_from INTEGER NOT NULL,
  period_to INTEGER NOT NULL,
  issued_at INTEGER NOT NULL,
  document TEXT NOT NULL,
  reason TEXT NOT NULL,
  -- The requests to credit, as a sorted JSON list; NULL: all that are left.
  request_ids TEXT,
  -- The last row that was looked at. A list of requests is taken in the order of the ids alone.
  after_settled_at INTEGER NOT NULL,
  after_request_id TEXT NOT NULL
) STRICT;
