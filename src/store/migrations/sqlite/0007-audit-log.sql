-- What operators did. An entry is begun before the action and ended after it; nothing else changes it.
CREATE TABLE audit_log (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  -- Who: the token or a session of the console, and the address it came from.
  actor TEXT NOT NULL,
  request_id TEXT NOT NULL,
  action TEXT NOT NULL,
  -- What it was done to, and with which body, as JSON without secrets.
  subject TEXT NOT NULL,
  request TEXT,
  before TEXT,
  after TEXT,
  outcome TEXT NOT NULL DEFAULT 'begun' CHECK (outcome IN ('begun', 'done', 'refused'))
) STRICT;

CREATE TRIGGER audit_log_keeps_its_word BEFORE UPDATE ON audit_log
WHEN old.outcome <> 'begun' OR old.at <> new.at OR old.actor <> new.actor OR old.action <> new.action
  OR old.subject <> new.subject OR old.request IS NOT new.request OR old.before IS NOT new.before
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_log_never_forgets BEFORE DELETE ON audit_log
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
