-- Lists of requests that failed, the newest first: of all workspaces, of one, and of one with an error code.
CREATE INDEX ledger_failed ON ledger (settled_at, request_id) WHERE outcome <> 'completed';
CREATE INDEX ledger_failed_of_workspace ON ledger (workspace_id, settled_at, request_id) WHERE outcome <> 'completed';
CREATE INDEX ledger_failed_by_code ON ledger (workspace_id, error_code, settled_at, request_id)
  WHERE error_code IS NOT NULL;
