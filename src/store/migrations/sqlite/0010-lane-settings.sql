-- What operators set while the service runs, beside the catalog's file.
CREATE TABLE lane_limits (
  lane TEXT PRIMARY KEY,
  token_budget INTEGER NOT NULL,
  max_concurrent_requests INTEGER NOT NULL,
  max_queue_depth INTEGER NOT NULL,
  max_wait_ms INTEGER NOT NULL,
  -- What the file said when these were set, as JSON. They end when it says something else.
  limits_in_file TEXT NOT NULL
) STRICT;

-- Addresses of engines that get no new calls.
CREATE TABLE drained_addresses (url TEXT PRIMARY KEY) STRICT;
