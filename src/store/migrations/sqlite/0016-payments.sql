-- The amounts of each document, so that the database can compute what is still owed on an invoice.
CREATE TABLE document_amounts (
  number TEXT PRIMARY KEY REFERENCES invoices (number),
  -- The tax invoice that the amounts belong to: the document itself, or the one that it adjusts.
  invoice TEXT NOT NULL REFERENCES invoices (number),
  -- The day in Sydney; NULL for an adjustment note.
  due TEXT,
  -- Including GST.
  total_cents INTEGER NOT NULL,
  -- The exact sum of the lines, in pico-AUD: billions and the rest. Both have its sign.
  lines_high INTEGER NOT NULL,
  lines_low INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX document_amounts_of_invoice ON document_amounts (invoice);

INSERT INTO document_amounts (number, invoice, due, total_cents, lines_high, lines_low)
  SELECT number, invoice, due, CAST(replace(total, '.', '') AS INTEGER),
    sign * CAST(substr(pico, 1, length(pico) - 9) AS INTEGER), sign * CAST(substr(pico, -9) AS INTEGER)
  FROM (
    SELECT number, coalesce(document ->> '$.adjusts', number) AS invoice, document ->> '$.due' AS due,
      document ->> '$.total' AS total, CASE WHEN lines_total LIKE '-%' THEN -1 ELSE 1 END AS sign,
      replace(substr(lines_total, 1, instr(lines_total, '.') - 1), '-', '')
        || substr(substr(lines_total, instr(lines_total, '.') + 1) || '000000000000', 1, 12) AS pico
    FROM (SELECT number, document, document ->> '$.lines_total' AS lines_total FROM invoices) AS issued
  ) AS amounts;

-- What was paid on an invoice, and paid back. A payment that was recorded by mistake is marked as removed.
CREATE TABLE payments (
  number TEXT NOT NULL REFERENCES invoices (number),
  -- Counts the payments of the invoice from 1.
  sequence INTEGER NOT NULL CHECK (sequence > 0),
  -- Negative if it was paid back to the buyer.
  amount_cents INTEGER NOT NULL CHECK (amount_cents <> 0),
  paid_on TEXT NOT NULL,
  reference TEXT NOT NULL,
  recorded_at INTEGER NOT NULL,
  removed_at INTEGER,
  PRIMARY KEY (number, sequence)
) STRICT, WITHOUT ROWID;
-- The same payment is recorded once.
CREATE UNIQUE INDEX payment_recorded_once ON payments (number, paid_on, amount_cents, reference)
  WHERE removed_at IS NULL;
