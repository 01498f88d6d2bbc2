-- What operators are notified of. The id depends only on what happened, so that each event exists once.
CREATE TABLE alert_events (
  id TEXT COLLATE "C" PRIMARY KEY,
  type TEXT COLLATE "C" NOT NULL,
  occurred_at BIGINT NOT NULL,
  workspace_id TEXT COLLATE "C",
  key_id TEXT COLLATE "C",
  -- What its state is of, such as an engine.
  subject TEXT COLLATE "C",
  data TEXT COLLATE "C" NOT NULL,
  -- What is sent. NULL: it has no deliveries yet.
  body TEXT COLLATE "C"
);
CREATE INDEX alert_events_to_dispatch ON alert_events (occurred_at) WHERE body IS NULL;
CREATE INDEX alert_events_by_time ON alert_events (occurred_at);
CREATE INDEX alert_events_by_subject ON alert_events (subject, occurred_at) WHERE subject IS NOT NULL;

-- An event on its way to one endpoint.
CREATE TABLE alert_deliveries (
  id TEXT COLLATE "C" PRIMARY KEY,
  event_id TEXT COLLATE "C" NOT NULL REFERENCES alert_events (id),
  endpoint TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL CHECK (state IN ('queued', 'sent', 'failed')),
  -- Counts every attempt that has begun.
  attempts BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  next_attempt_at BIGINT NOT NULL,
  -- Until then, only the process that has claimed the delivery may send it.
  lease_until BIGINT NOT NULL,
  sent_at BIGINT,
  last_error TEXT COLLATE "C"
);
CREATE INDEX alert_deliveries_queued ON alert_deliveries (endpoint, next_attempt_at) WHERE state = 'queued';
CREATE INDEX alert_deliveries_by_time ON alert_deliveries (created_at, id);
CREATE INDEX alert_deliveries_by_event ON alert_deliveries (event_id);

-- Endpoints whose receiver answered that it is gone. Another address counts as another endpoint.
CREATE TABLE disabled_endpoints (
  name TEXT COLLATE "C" PRIMARY KEY,
  url TEXT COLLATE "C" NOT NULL,
  disabled_at BIGINT NOT NULL
);

-- Finds the keys that expire soon.
CREATE INDEX api_keys_by_expiry ON api_keys (expires_at, id) WHERE expires_at IS NOT NULL AND revoked_at IS NULL;
