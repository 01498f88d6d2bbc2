
  CREATE TABLE workspaces (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    requests_per_minute INTEGER,
    created_at INTEGER NOT NULL,
    -- For a month in Sydney; NULL: none.
    spend_limit_pico_aud INTEGER CHECK (spend_limit_pico_aud >= 0),
    spend_limit_is_soft INTEGER NOT NULL DEFAULT 0,
    -- Who its invoices are made out to; NULL: its name.
    buyer_name TEXT,
    buyer_abn TEXT,
    buyer_address TEXT
  ) STRICT;

  CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    hash TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
  ) STRICT;

  -- prices NULL: the workspace's own price ended, and the list price applies again.
  CREATE TABLE price_versions (
    id INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    workspace_id TEXT REFERENCES workspaces (id),
    prices TEXT,
    effective_from INTEGER NOT NULL
  ) STRICT;

  -- What one transaction opened, as JSON: a list of requests, each a list of values.
  CREATE TABLE intents (
    id INTEGER PRIMARY KEY,
    requests TEXT NOT NULL
  ) STRICT;

  CREATE TABLE ledger (
    -- In the order of writing.
    position INTEGER PRIMARY KEY,
    request_id TEXT NOT NULL UNIQUE,
    workspace_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    model TEXT NOT NULL,
    lane TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    price_version INTEGER NOT NULL,
    max_tokens INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    cached_input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    images INTEGER NOT NULL,
    audio_ms INTEGER NOT NULL,
    estimated INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    amount_pico_aud INTEGER NOT NULL,
    queue_wait_ms INTEGER NOT NULL,
    first_token_ms INTEGER,
    duration_ms INTEGER NOT NULL,
    -- The time it is billed at, and the midnight in Sydney before it.
    settled_at INTEGER NOT NULL,
    settled_day INTEGER NOT NULL,
    -- Reserved capacity is billed by its time.
    capacity_ms INTEGER NOT NULL DEFAULT 0,
    -- The row that this one takes back, in part or whole; and the adjustment note it stands in, if not in the invoice of its month.
    corrects TEXT REFERENCES ledger (request_id),
    credit_note TEXT NOT NULL DEFAULT '',
    reason TEXT,
    CHECK (corrects IS NOT NULL OR (cached_input_tokens BETWEEN 0 AND input_tokens AND output_tokens >= 0
      AND images >= 0 AND audio_ms >= 0 AND capacity_ms >= 0 AND amount_pico_aud >= 0))
  ) STRICT;

  CREATE INDEX ledger_by_workspace ON ledger (workspace_id, settled_at, request_id);
  CREATE INDEX ledger_by_lane ON ledger (lane, started_at);
  -- A row is taken back at most once; a correction may be corrected in its turn.
  CREATE UNIQUE INDEX ledger_by_corrected ON ledger (corrects) WHERE corrects IS NOT NULL;

  CREATE TRIGGER ledger_never_changes BEFORE UPDATE ON ledger
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  CREATE TRIGGER ledger_never_forgets BEFORE DELETE ON ledger
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  
  CREATE TABLE usage_hours (
    workspace_id TEXT NOT NULL,
    hour INTEGER NOT NULL,
    model TEXT NOT NULL,
    key_id TEXT NOT NULL,
    price_version INTEGER NOT NULL,
    credit_note TEXT NOT NULL,
    row_count INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    estimated_requests INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL, cached_input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, images INTEGER NOT NULL, audio_ms INTEGER NOT NULL, capacity_ms INTEGER NOT NULL, amount_pico_aud INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, hour, model, key_id, price_version, credit_note)
  ) STRICT, WITHOUT ROWID;
  
  CREATE TABLE usage_days (
    workspace_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    model TEXT NOT NULL,
    key_id TEXT NOT NULL,
    price_version INTEGER NOT NULL,
    credit_note TEXT NOT NULL,
    row_count INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    estimated_requests INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL, cached_input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, images INTEGER NOT NULL, audio_ms INTEGER NOT NULL, capacity_ms INTEGER NOT NULL, amount_pico_aud INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, day, model, key_id, price_version, credit_note)
  ) STRICT, WITHOUT ROWID;
  -- The last row that is in the sums.
  CREATE TABLE usage_summed (position INTEGER NOT NULL) STRICT;
  INSERT INTO usage_summed VALUES (0);

  -- Invoices and adjustment notes. The document is what was issued; the rest finds it.
  CREATE TABLE invoices (
    number TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('tax_invoice', 'adjustment_note')),
    sequence INTEGER NOT NULL CHECK (sequence > 0),
    seller_abn TEXT NOT NULL,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    period TEXT NOT NULL,
    period_from INTEGER NOT NULL,
    period_to INTEGER NOT NULL,
    issued_at INTEGER NOT NULL,
    document TEXT NOT NULL,
    UNIQUE (kind, sequence)
  ) STRICT;
  CREATE UNIQUE INDEX invoice_of_month ON invoices (workspace_id, period) WHERE kind = 'tax_invoice';
  CREATE INDEX invoices_by_workspace ON invoices (workspace_id, period_to);

  CREATE TRIGGER invoices_never_change BEFORE UPDATE ON invoices
  BEGIN SELECT RAISE(ABORT, 'an issued invoice never changes'); END;
  CREATE TRIGGER invoices_never_go BEFORE DELETE ON invoices
  BEGIN SELECT RAISE(ABORT, 'an issued invoice never changes'); END;
  