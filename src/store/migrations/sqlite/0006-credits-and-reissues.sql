-- A credit of a free amount is a row of its own, and the only one that may cost less than nothing without reversing
-- another row. SQLite cannot change a CHECK in place. Copying a large ledger would take minutes and twice the space, so
-- this follows "Making Other Kinds Of Table Schema Changes" in SQLite's documentation: the new rule allows more than the
-- old one, so every row that is there fits.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'amount_pico_aud >= 0))', '(amount_pico_aud >= 0 OR endpoint = ''credit'')))')
  WHERE type = 'table' AND name = 'ledger';
PRAGMA writable_schema = RESET;
-- Finds the few credits among the many rows of a month.
CREATE INDEX ledger_credits ON ledger (workspace_id, settled_at, request_id) WHERE endpoint = 'credit';

-- A month can be invoiced again once its invoice is credited as a whole, and each invoice is replaced once.
ALTER TABLE invoices ADD COLUMN replaces TEXT REFERENCES invoices (number);
DROP INDEX invoice_of_month;
CREATE UNIQUE INDEX first_invoice_of_month ON invoices (workspace_id, period)
  WHERE kind = 'tax_invoice' AND replaces IS NULL;
CREATE UNIQUE INDEX invoice_replaced_once ON invoices (replaces) WHERE replaces IS NOT NULL;

-- Which rows an unfinished document takes back: all rows of some documents ('': the invoice of the month), and only the
-- credits of others, all of them settled before rows_to. Both are JSON lists.
ALTER TABLE unfinished_notes ADD COLUMN replaces TEXT;
ALTER TABLE unfinished_notes ADD COLUMN rows_of TEXT NOT NULL DEFAULT '[""]';
ALTER TABLE unfinished_notes ADD COLUMN credits_of TEXT NOT NULL DEFAULT '[]';
ALTER TABLE unfinished_notes ADD COLUMN rows_to INTEGER;
UPDATE unfinished_notes SET rows_to = period_to;

ALTER TABLE workspaces ADD COLUMN buyer_purchase_order TEXT;

-- Signs the links to the rows of an invoice. Another secret makes all links that were given out useless.
CREATE TABLE link_secret (
  slot INTEGER PRIMARY KEY CHECK (slot = 1),
  secret TEXT NOT NULL
) STRICT;
