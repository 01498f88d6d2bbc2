-- The data directories whose books were moved here from SQLite. No service starts while a move is not finished.
CREATE TABLE moved_from (
  directory TEXT COLLATE "C" PRIMARY KEY,
  finished_at BIGINT
);
