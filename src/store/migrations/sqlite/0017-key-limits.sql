-- What a key may do. NULL: there is no such limit. The lists are JSON arrays of strings.
ALTER TABLE api_keys ADD COLUMN requests_per_minute INTEGER;
ALTER TABLE api_keys ADD COLUMN allowed_models TEXT;
ALTER TABLE api_keys ADD COLUMN allowed_endpoints TEXT;
ALTER TABLE api_keys ADD COLUMN allowed_addresses TEXT;
