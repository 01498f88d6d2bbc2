-- What a key may do. NULL: there is no such limit. The lists are JSON arrays of strings.
ALTER TABLE api_keys ADD COLUMN requests_per_minute BIGINT;
ALTER TABLE api_keys ADD COLUMN allowed_models TEXT COLLATE "C";
ALTER TABLE api_keys ADD COLUMN allowed_endpoints TEXT COLLATE "C";
ALTER TABLE api_keys ADD COLUMN allowed_addresses TEXT COLLATE "C";
