-- Lists of requests of all workspaces, the newest first: all of them, those of a model, and those that failed in one way.
CREATE INDEX ledger_by_time ON ledger (settled_at, request_id);
CREATE INDEX ledger_by_model ON ledger (model, settled_at, request_id);
CREATE INDEX ledger_failed_with_code ON ledger (error_code, settled_at, request_id) WHERE error_code IS NOT NULL;
CREATE INDEX ledger_failed_with_status ON ledger (http_status, settled_at, request_id) WHERE outcome <> 'completed';
