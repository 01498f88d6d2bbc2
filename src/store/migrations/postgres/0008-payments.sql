-- The amounts of each document, so that the database can compute what is still owed on an invoice.
CREATE TABLE document_amounts (
  number TEXT COLLATE "C" PRIMARY KEY REFERENCES invoices (number),
  -- The tax invoice that the amounts belong to: the document itself, or the one that it adjusts.
  invoice TEXT COLLATE "C" NOT NULL REFERENCES invoices (number),
  -- The day in Sydney; NULL for an adjustment note.
  due TEXT COLLATE "C",
  -- Including GST.
  total_cents BIGINT NOT NULL,
  -- The exact sum of the lines, in pico-AUD: billions and the rest. Both have its sign.
  lines_high BIGINT NOT NULL,
  lines_low BIGINT NOT NULL
);
CREATE INDEX document_amounts_of_invoice ON document_amounts (invoice);

INSERT INTO document_amounts (number, invoice, due, total_cents, lines_high, lines_low)
  SELECT number, invoice, due, replace(total, '.', '')::bigint,
    sign * left(pico, -9)::bigint, sign * right(pico, 9)::bigint
  FROM (
    SELECT number, coalesce(document ->> 'adjusts', number) AS invoice, document ->> 'due' AS due,
      document ->> 'total' AS total, CASE WHEN document ->> 'lines_total' LIKE '-%' THEN -1 ELSE 1 END AS sign,
      replace(split_part(document ->> 'lines_total', '.', 1), '-', '')
        || rpad(split_part(document ->> 'lines_total', '.', 2), 12, '0') AS pico
    FROM (SELECT number, document::json AS document FROM invoices) AS issued
  ) AS amounts;

-- What was paid on an invoice, and paid back. A payment that was recorded by mistake is marked as removed.
CREATE TABLE payments (
  number TEXT COLLATE "C" NOT NULL REFERENCES invoices (number),
  -- Counts the payments of the invoice from 1.
  sequence BIGINT NOT NULL CHECK (sequence > 0),
  -- Negative if it was paid back to the buyer.
  amount_cents BIGINT NOT NULL CHECK (amount_cents <> 0),
  paid_on TEXT COLLATE "C" NOT NULL,
  reference TEXT COLLATE "C" NOT NULL,
  recorded_at BIGINT NOT NULL,
  removed_at BIGINT,
  PRIMARY KEY (number, sequence)
);
-- The same payment is recorded once.
CREATE UNIQUE INDEX payment_recorded_once ON payments (number, paid_on, amount_cents, reference)
  WHERE removed_at IS NULL;
