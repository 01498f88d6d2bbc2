-- Why a request failed. NULL in rows of older versions, and in rows that billing adds.
ALTER TABLE ledger ADD COLUMN http_status BIGINT;
ALTER TABLE ledger ADD COLUMN error_code TEXT COLLATE "C";

-- Requests that were refused before an engine had them, by hour. They are not in the ledger.
CREATE TABLE refused_hours (
  -- '' if the request had no valid key.
  workspace_id TEXT COLLATE "C" NOT NULL,
  hour BIGINT NOT NULL,
  -- '' if it had none; in a workspace: keys beyond those that are counted one by one.
  key_id TEXT COLLATE "C" NOT NULL,
  code TEXT COLLATE "C" NOT NULL,
  requests BIGINT NOT NULL CHECK (requests > 0),
  PRIMARY KEY (workspace_id, hour, key_id, code)
);
CREATE INDEX refused_hours_by_time ON refused_hours (hour);

-- The newest of them, of each workspace and code.
CREATE TABLE refused_requests (
  request_id TEXT COLLATE "C" PRIMARY KEY,
  at BIGINT NOT NULL,
  workspace_id TEXT COLLATE "C" NOT NULL,
  key_id TEXT COLLATE "C" NOT NULL,
  -- '' if there is no such endpoint.
  endpoint TEXT COLLATE "C" NOT NULL,
  -- '' unless it is a model of the catalog.
  model TEXT COLLATE "C" NOT NULL,
  code TEXT COLLATE "C" NOT NULL,
  http_status BIGINT NOT NULL,
  -- The field that it is about; '' unless the endpoint has such a field.
  param TEXT COLLATE "C" NOT NULL,
  -- In our own words. Never those of the caller.
  reason TEXT COLLATE "C" NOT NULL
);
CREATE INDEX refused_requests_by_code ON refused_requests (workspace_id, code, at, request_id);
CREATE INDEX refused_requests_by_time ON refused_requests (at, request_id);
