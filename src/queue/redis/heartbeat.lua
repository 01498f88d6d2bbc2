-- A replica's heartbeat. ARGV: 3 its lease, 4 and 5 the promise that it has now (requests, tokens).
-- Renews the lease, and promises the replica a part of the free capacity. The larger of the old and the new promise counts
-- until the next heartbeat, because this answer may be lost.
-- Returns false if the replica must join again. Otherwise returns the new promise, the number of replicas, the grants that
-- the replica has not acknowledged, and its preempted places, in case it missed the messages.
if not is_member then return false end
redis.call('ZADD', DUE, text(now + tonumber(ARGV[3])), 'lease ' .. replica)
set_promise(replica, tonumber(ARGV[4]), tonumber(ARGV[5]))
settle()

local members = 0
for _, field in ipairs(redis.call('HKEYS', LANE)) do
  if string.find(field, '^member ') then members = members + 1 end
end

-- Free capacity is divided equally. When a replica needs more than its part, the other promises are recalled.
local function part(limit, used, promised, own)
  local free = limit - used - (promised - own)
  return math.max(0, math.min(free, math.ceil((limit - used) / members)))
end
local requests, tokens = 0, 0
local waits_for_promises = redis.call('ZCARD', QUEUE) > 0 or (batch and batch.wait_for_promises())
if not is_quiet() and not waits_for_promises then
  requests = part(limits.requests, figures.requests, figures.promised_requests, tonumber(ARGV[4]))
  tokens = part(limits.tokens, figures.tokens, figures.promised_tokens, tonumber(ARGV[5]))
end
local counted_requests, counted_tokens = promise_of(replica)
set_promise(replica, math.max(counted_requests, requests), math.max(counted_tokens, tokens))

local function own(ids)
  local found = {}
  for _, id in ipairs(ids) do
    local place = place_of(id)
    if place and place.owner == replica then found[#found + 1] = id end
  end
  return found
end
local unacknowledged = own(redis.call('ZRANGE', GRANTS, 0, -1))
local preempted = batch and own(batch.preempted()) or {}
save()
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, 86400000) end
return { text(requests), text(tokens), members, unacknowledged, preempted }
