-- How many requests one workspace may have in a lane. NULL: not limited.
ALTER TABLE lane_limits ADD COLUMN max_requests_per_workspace INTEGER;
