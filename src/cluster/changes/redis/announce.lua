-- Notifies every replica of a change. KEYS, with one hash tag: 1 the versions, 2 the leases of the replicas.
-- ARGV: 1 the change, 2 the message, to which the version is added as its last line.
-- The version is incremented, so that a replica that misses the message can detect this.
-- Returns the version, and the replicas with a valid lease.
local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000000 + tonumber(time[2]))
local version = redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
redis.call('PUBLISH', 'weir:changes', ARGV[2] .. '\n' .. version)
return { version, redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. now, '+inf') }
