-- Who is signed in to a console, and the one-time links that sign people in.
CREATE TABLE console_sessions (
  -- The order in which they were made: the oldest gives way.
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('session', 'link')),
  -- Of the secret, which is stored nowhere.
  hash TEXT NOT NULL UNIQUE,
  -- The id of a workspace, or "operator".
  owner TEXT NOT NULL,
  -- Of the API key that a session was begun with.
  key_hash TEXT,
  name TEXT NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX console_sessions_of_owner ON console_sessions (kind, owner, id);
CREATE INDEX console_sessions_of_key ON console_sessions (key_hash) WHERE key_hash IS NOT NULL;
