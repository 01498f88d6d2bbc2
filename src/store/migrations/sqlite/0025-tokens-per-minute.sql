-- Tokens per minute, a soft limit. NULL: there is no such limit.
ALTER TABLE workspaces ADD COLUMN tokens_per_minute INTEGER;
ALTER TABLE api_keys ADD COLUMN tokens_per_minute INTEGER;
