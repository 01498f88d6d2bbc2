/**
 * The tables, one step a version. A step, once released, never changes; a new one is added at the end.
 * The ledger is append-only: what is open stands in `intents` and moves to `ledger` when it is settled.
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE workspaces (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    requests_per_minute INTEGER,
    created_at INTEGER NOT NULL
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

  CREATE TABLE intents (
    request_id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    model TEXT NOT NULL,
    lane TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    price_version INTEGER NOT NULL,
    max_tokens INTEGER NOT NULL,
    started_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE ledger (
    request_id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    model TEXT NOT NULL,
    lane TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    price_version INTEGER NOT NULL,
    max_tokens INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    cached_input_tokens INTEGER NOT NULL CHECK (cached_input_tokens BETWEEN 0 AND input_tokens),
    output_tokens INTEGER NOT NULL CHECK (output_tokens >= 0),
    images INTEGER NOT NULL CHECK (images >= 0),
    audio_ms INTEGER NOT NULL CHECK (audio_ms >= 0),
    estimated INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    amount_pico_aud INTEGER NOT NULL CHECK (amount_pico_aud >= 0),
    queue_wait_ms INTEGER NOT NULL,
    first_token_ms INTEGER,
    duration_ms INTEGER NOT NULL,
    settled_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX ledger_by_workspace ON ledger (workspace_id, settled_at);
  CREATE INDEX ledger_by_lane ON ledger (lane, started_at);
  `,
]
