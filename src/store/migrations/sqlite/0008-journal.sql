-- How far the journal of each owner is in the ledger. It changes in the transaction that adds the rows.
CREATE TABLE journal_positions (
  owner TEXT PRIMARY KEY,
  segment INTEGER NOT NULL,
  position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
