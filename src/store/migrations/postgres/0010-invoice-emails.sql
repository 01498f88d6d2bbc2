-- Where the invoices of a workspace are sent. NULL: nowhere.
ALTER TABLE workspaces ADD COLUMN buyer_email TEXT COLLATE "C";

-- The e-mail of each document that is to be sent, or was.
CREATE TABLE invoice_emails (
  number TEXT COLLATE "C" PRIMARY KEY REFERENCES invoices (number),
  recipient TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL CHECK (state IN ('queued', 'sent', 'failed')),
  -- Counts every attempt that has begun.
  attempts BIGINT NOT NULL,
  next_attempt_at BIGINT NOT NULL,
  -- Until then, only the process that has claimed the e-mail may send it.
  lease_until BIGINT NOT NULL,
  sent_at BIGINT,
  last_error TEXT COLLATE "C"
);
CREATE INDEX invoice_emails_queued ON invoice_emails (next_attempt_at) WHERE state = 'queued';
