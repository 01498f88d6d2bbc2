-- Asks a replica to drain. It receives this with its next heartbeat. KEYS as in replicas.lua. ARGV: 1 the replica.
-- Asking again changes nothing. Returns whether there is such a replica.
if not redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'drain ' .. ARGV[1], 1)
return 1
