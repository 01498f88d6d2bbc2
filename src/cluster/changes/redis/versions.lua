-- The version of each change. KEYS: 1 the versions. ARGV: the changes.
return redis.call('HMGET', KEYS[1], unpack(ARGV))
