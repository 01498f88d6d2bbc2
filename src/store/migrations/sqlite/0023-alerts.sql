-- What operators are notified of. The id depends only on what happened, so that each event exists once.
CREATE TABLE alert_events (
  id TEXT PRIMARY KEY,
  type TEXT NOT NULL,
  occurred_at INTEGER NOT NULL,
  workspace_id TEXT,
  key_id TEXT,
  -- What its state is of, such as an engine.
  subject TEXT,
  data TEXT NOT NULL,
  -- What is sent. NULL: it has no deliveries yet.
  body TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX alert_events_to_dispatch ON alert_events (occurred_at) WHERE body IS NULL;
CREATE INDEX alert_events_by_time ON alert_events (occurred_at);
CREATE INDEX alert_events_by_subject ON alert_events (subject, occurred_at) WHERE subject IS NOT NULL;

-- An event on its way to one endpoint.
CREATE TABLE alert_deliveries (
  id TEXT PRIMARY KEY,
  event_id TEXT NOT NULL REFERENCES alert_events (id),
  endpoint TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'sent', 'failed')),
  -- Counts every attempt that has begun.
  attempts INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  next_attempt_at INTEGER NOT NULL,
  -- Until then, only the process that has claimed the delivery may send it.
  lease_until INTEGER NOT NULL,
  sent_at INTEGER,
  last_error TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX alert_deliveries_queued ON alert_deliveries (endpoint, next_attempt_at) WHERE state = 'queued';
CREATE INDEX alert_deliveries_by_time ON alert_deliveries (created_at, id);
CREATE INDEX alert_deliveries_by_event ON alert_deliveries (event_id);

-- Endpoints whose receiver answered that it is gone. Another address counts as another endpoint.
CREATE TABLE disabled_endpoints (
  name TEXT PRIMARY KEY,
  url TEXT NOT NULL,
  disabled_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Finds the keys that expire soon.
CREATE INDEX api_keys_by_expiry ON api_keys (expires_at, id) WHERE expires_at IS NOT NULL AND revoked_at IS NULL;
