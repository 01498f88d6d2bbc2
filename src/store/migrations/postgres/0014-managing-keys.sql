-- 1: the key may create, change and revoke keys of its workspace that may do no more than itself.
ALTER TABLE api_keys ADD COLUMN manage_keys BIGINT NOT NULL DEFAULT 0;
