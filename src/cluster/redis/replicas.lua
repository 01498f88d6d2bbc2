-- The heartbeat of a replica, which renews its lease. KEYS, with one hash tag: 1 hash of the epoch and of each replica's
-- reported state, 2 sorted set of leases, by their end. ARGV: 1 the replica, 2 the run id of this Redis, 3 the lease in
-- microseconds, 4 the state that the replica reports.
-- A new epoch begins when there is no data, or when another server wrote it: a failover may lose acknowledged writes.
-- Then nothing is admitted for one lease. In that time every replica reconnects and reports what it has in flight, or
-- stops serving.
-- Returns the epoch, how long it admits nothing (microseconds), the number of replicas, and whether this one was asked to
-- drain.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local lease = tonumber(ARGV[3])
local function text(number) return string.format('%.0f', number) end

if redis.call('HGET', KEYS[1], 'run_id') ~= ARGV[2] then
  redis.call('DEL', KEYS[1], KEYS[2])
  redis.call('HSET', KEYS[1], 'run_id', ARGV[2], 'epoch', text(now), 'quiet_until', text(now + lease))
end
for _, ended in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', text(now))) do
  redis.call('ZREM', KEYS[2], ended)
  redis.call('HDEL', KEYS[1], 'replica ' .. ended, 'drain ' .. ended)
end
redis.call('ZADD', KEYS[2], text(now + lease), ARGV[1])
redis.call('HSET', KEYS[1], 'replica ' .. ARGV[1], ARGV[4])
local quiet_until = tonumber(redis.call('HGET', KEYS[1], 'quiet_until'))
return { redis.call('HGET', KEYS[1], 'epoch'), math.max(0, quiet_until - now), redis.call('ZCARD', KEYS[2]),
  redis.call('HEXISTS', KEYS[1], 'drain ' .. ARGV[1]) }
