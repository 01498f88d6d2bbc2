-- What the key is for, in its owner's words.
ALTER TABLE api_keys ADD COLUMN name TEXT;
-- From this moment on the key is refused; NULL: never.
ALTER TABLE api_keys ADD COLUMN expires_at INTEGER;
