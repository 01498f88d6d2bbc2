-- Counts creations and revocations, so that a service reads only what has changed.
ALTER TABLE api_keys ADD COLUMN change INTEGER NOT NULL DEFAULT 0;
CREATE INDEX api_keys_by_change ON api_keys (change);
-- Lists of keys, the newest first: of all workspaces or of one, all keys or those that are not revoked.
CREATE INDEX api_keys_by_time ON api_keys (created_at, id);
CREATE INDEX api_keys_by_workspace ON api_keys (workspace_id, created_at, id);
CREATE INDEX api_keys_in_use_by_time ON api_keys (created_at, id) WHERE revoked_at IS NULL;
CREATE INDEX api_keys_in_use_by_workspace ON api_keys (workspace_id, created_at, id) WHERE revoked_at IS NULL;
-- What a key used, and when it was last used.
CREATE INDEX usage_days_by_key ON usage_days (key_id, day);
CREATE INDEX usage_hours_by_key ON usage_hours (key_id, hour);
