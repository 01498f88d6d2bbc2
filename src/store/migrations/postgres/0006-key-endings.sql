-- The last four characters of a key, to tell keys apart. NULL for keys of older versions.
ALTER TABLE api_keys ADD COLUMN ending TEXT COLLATE "C";
