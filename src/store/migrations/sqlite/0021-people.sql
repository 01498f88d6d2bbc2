-- People who sign in through an identity provider.
CREATE TABLE people (
  -- Stands in the ledger where a key would.
  id TEXT PRIMARY KEY,
  issuer TEXT NOT NULL,
  -- The id that the provider gives them.
  subject TEXT NOT NULL,
  -- As they were at the last sign-in.
  name TEXT,
  email TEXT
) STRICT;

ALTER TABLE console_sessions ADD COLUMN started_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE console_sessions ADD COLUMN used_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE console_sessions ADD COLUMN address TEXT;
ALTER TABLE console_sessions ADD COLUMN person_id TEXT REFERENCES people (id);
-- JSON: the roles of the person, each with the id of a workspace if it is a role in one.
ALTER TABLE console_sessions ADD COLUMN roles TEXT NOT NULL DEFAULT '[]';

-- Older sessions last twelve hours.
UPDATE console_sessions SET started_at = expires_at - 43200000, used_at = expires_at - 43200000;
CREATE INDEX console_sessions_of_person ON console_sessions (person_id) WHERE person_id IS NOT NULL;
