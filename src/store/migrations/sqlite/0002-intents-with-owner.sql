-- The id of this data directory. It owns the intents that the directory's service writes.
CREATE TABLE data_directory (id TEXT NOT NULL) STRICT;
INSERT INTO data_directory VALUES (lower(hex(randomblob(16))));

-- One row for each batch of intents: an owner settles only its own batches after a crash, and names them so that
-- no other process can choose the same name. `requests` is JSON: a list of requests, each a list of values.
ALTER TABLE intents RENAME TO intents_without_owner;
CREATE TABLE intents (
  owner TEXT NOT NULL,
  batch TEXT NOT NULL,
  requests TEXT NOT NULL,
  PRIMARY KEY (owner, batch)
) STRICT, WITHOUT ROWID;
INSERT INTO intents
  SELECT data_directory.id, 'schema-1-' || old.id, old.requests FROM intents_without_owner AS old, data_directory;
DROP TABLE intents_without_owner;
