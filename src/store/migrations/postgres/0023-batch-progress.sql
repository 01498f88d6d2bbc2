-- Why a line failed, and when it ended. 0: it has not, or an older version ran it.
ALTER TABLE batch_results ADD COLUMN error_code TEXT COLLATE "C";
ALTER TABLE batch_results ADD COLUMN ended_at BIGINT NOT NULL DEFAULT 0;
-- The failed lines by their error, as JSON. Set when the batch has ended. Until then they are counted.
ALTER TABLE batches ADD COLUMN failures TEXT COLLATE "C";
CREATE INDEX batches_by_time ON batches (created_at, id);
