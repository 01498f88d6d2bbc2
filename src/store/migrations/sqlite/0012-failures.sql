-- Why a request failed. NULL in rows of older versions, and in rows that billing adds.
ALTER TABLE ledger ADD COLUMN http_status INTEGER;
ALTER TABLE ledger ADD COLUMN error_code TEXT;

-- Requests that were refused before an engine had them, by hour. They are not in the ledger.
CREATE TABLE refused_hours (
  -- '' if the request had no valid key.
  workspace_id TEXT NOT NULL,
  hour INTEGER NOT NULL,
  -- '' if it had none; in a workspace: keys beyond those that are counted one by one.
  key_id TEXT NOT NULL,
  code TEXT NOT NULL,
  requests INTEGER NOT NULL CHECK (requests > 0),
  PRIMARY KEY (workspace_id, hour, key_id, code)
) STRICT, WITHOUT ROWID;
CREATE INDEX refused_hours_by_time ON refused_hours (hour);

-- The newest of them, of each workspace and code.
CREATE TABLE refused_requests (
  request_id TEXT PRIMARY KEY,
  at INTEGER NOT NULL,
  workspace_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  -- '' if there is no such endpoint.
  endpoint TEXT NOT NULL,
  -- '' unless it is a model of the catalog.
  model TEXT NOT NULL,
  code TEXT NOT NULL,
  http_status INTEGER NOT NULL,
  -- The field that it is about; '' unless the endpoint has such a field.
  param TEXT NOT NULL,
  -- In our own words. Never those of the caller.
  reason TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX refused_requests_by_code ON refused_requests (workspace_id, code, at, request_id);
CREATE INDEX refused_requests_by_time ON refused_requests (at, request_id);
