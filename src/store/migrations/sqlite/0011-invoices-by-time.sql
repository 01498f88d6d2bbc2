-- Lists of documents come in pages, the newest first.
CREATE INDEX invoices_by_time ON invoices (issued_at, number);
CREATE INDEX invoices_of_workspace_by_time ON invoices (workspace_id, issued_at, number);
