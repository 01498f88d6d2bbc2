-- Where the invoices of a workspace are sent. NULL: nowhere.
ALTER TABLE workspaces ADD COLUMN buyer_email TEXT;

-- The e-mail of each document that is to be sent, or was.
CREATE TABLE invoice_emails (
  number TEXT PRIMARY KEY REFERENCES invoices (number),
  recipient TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'sent', 'failed')),
  -- Counts every attempt that has begun.
  attempts INTEGER NOT NULL,
  next_attempt_at INTEGER NOT NULL,
  -- Until then, only the process that has claimed the e-mail may send it.
  lease_until INTEGER NOT NULL,
  sent_at INTEGER,
  last_error TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX invoice_emails_queued ON invoice_emails (next_attempt_at) WHERE state = 'queued';
