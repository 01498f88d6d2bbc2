-- The last reported state of each replica with a valid lease. KEYS as in replicas.lua. Returns name, text, name, text …
local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000000 + tonumber(time[2]))
local found = {}
for _, replica in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. now, '+inf')) do
  found[#found + 1] = replica
  found[#found + 1] = redis.call('HGET', KEYS[1], 'replica ' .. replica) or '{}'
end
return found
