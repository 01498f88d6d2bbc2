-- The rules of one lane across all replicas, as queue/lane.ts has them for one process. Every script starts with this
-- file. design.md explains the rules.
--
-- KEYS, all with the lane's hash tag:
--   1 hash:       limits, the limit for one workspace, figures, and the incarnation and promise of each member
--   2 sorted set: queued requests by number. A number is the time of arrival, and every number is unique
--   3 sorted set: deadlines: 'wait ID' is a maximum wait, 'lease REPLICA' a lease
--   4 sorted set: unacknowledged grants, by the time at which they must be acknowledged
--   5 hash:       every place: 'STATE REPLICA COST NUMBER', where STATE is queued, granted or in_flight
--   6 hash:       how many places each workspace has, while the lane limits that
--   7 to 12:      batch places (batch.lua, batch-queue.lua). Those in flight are in 5, too
-- The id of a place is 'REPLICA.NUMBER WORKSPACE', and that of a batch place 'batch REPLICA.NUMBER WORKSPACE'.
-- ARGV: 1 the replica, 2 its incarnation, then the script's own arguments. Times are in microseconds.

local LANE, QUEUE, DUE, GRANTS, PLACES, WORKSPACES = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local replica, incarnation = ARGV[1], ARGV[2]
local ACKNOWLEDGE_WITHIN = 2500000
local RECALL_AGAIN = 100000
local now = clock()

-- By default Lua formats large numbers as 1.7e+15.
local function text(number)
  return string.format('%d', number)
end

-- All limits are one field and all figures another, because Redis searches the fields of a small hash linearly.
local read = redis.call('HMGET', LANE, 'limits', 'figures', 'member ' .. replica, 'promise ' .. replica, 'per_workspace',
  'batch', 'batch_limits')
local LIMITS = { 'tokens', 'requests', 'depth', 'wait' }
local FIGURES = {
  'requests', 'tokens', 'promised_requests', 'promised_tokens', 'quiet_until', 'last_number', 'recalled_at',
}

local function unpacked(names, stored)
  local values, index = {}, 0
  for value in string.gmatch(stored, '%S+') do
    index = index + 1
    values[names[index]] = tonumber(value)
  end
  return values
end

local function packed(names, values)
  local texts = {}
  for index, name in ipairs(names) do texts[index] = text(values[name]) end
  return table.concat(texts, ' ')
end

local limits = unpacked(LIMITS, read[1] or '')
local figures = unpacked(FIGURES, read[2] or '0 0 0 0 0 0 0')
-- A field of its own, because replicas of earlier versions read exactly four limits. Negative: not limited.
limits.per_workspace = tonumber(read[5] or -1)
-- Fencing: scripts ignore a replica that was removed and every incarnation but the newest.
local is_member = read[3] == incarnation
-- The rules and figures of batch places (batch.lua). Nil while the lane has none, so that they cost nothing then.
local batch, batch_limits = nil, read[7]

-- Every script that changes something ends with this.
local function save()
  redis.call('HSET', LANE, 'figures', packed(FIGURES, figures))
  if batch then batch.save() end
end

local function is_batch(id)
  return string.sub(id, 1, 6) == 'batch '
end

local function workspace_of(id)
  return string.match(id, ' (.*)$') or ''
end

-- Counts the online places of the id's workspace, unless the lane has no limit for them.
local function count(id, change)
  if limits.per_workspace < 0 or is_batch(id) then return end
  local workspace = workspace_of(id)
  if redis.call('HINCRBY', WORKSPACES, workspace, change) <= 0 then redis.call('HDEL', WORKSPACES, workspace) end
end

-- For a limit that is new, and for places that a replica of an earlier version did not count.
local function count_again()
  redis.call('DEL', WORKSPACES)
  if limits.per_workspace < 0 then return end
  for _, id in ipairs(redis.call('HKEYS', PLACES)) do count(id, 1) end
end

local function is_workspace_full(id)
  if limits.per_workspace < 0 then return false end
  return tonumber(redis.call('HGET', WORKSPACES, workspace_of(id)) or 0) >= limits.per_workspace
end

-- Reads the five limits from ARGV, starting at this index, and behind them the limits for batch places in one value.
local function set_limits(first)
  for index, name in ipairs(LIMITS) do limits[name] = tonumber(ARGV[first + index - 1]) end
  limits.per_workspace = tonumber(ARGV[first + #LIMITS])
  redis.call('HSET', LANE, 'limits', packed(LIMITS, limits), 'per_workspace', text(limits.per_workspace),
    'batch_limits', ARGV[first + #LIMITS + 1])
  batch_limits = ARGV[first + #LIMITS + 1]
  count_again()
  if batch then batch.set_limits() end
end

-- A batch place that waits is in another hash.
local function place_of(id, hash)
  local stored = redis.call('HGET', hash or PLACES, id)
  if not stored then return nil end
  local state, owner, cost, number = string.match(stored, '^(%S+) (%S+) (%S+) (%S+)$')
  return { id = id, state = state, owner = owner, cost = tonumber(cost), number = tonumber(number) }
end

local function store(place, hash)
  redis.call('HSET', hash or PLACES, place.id,
    place.state .. ' ' .. place.owner .. ' ' .. text(place.cost) .. ' ' .. text(place.number))
end

-- Cache of the promises that this script has read or set.
local promises = { [replica] = read[4] or '0 0' }

local function promise_of(owner)
  promises[owner] = promises[owner] or redis.call('HGET', LANE, 'promise ' .. owner) or '0 0'
  local requests, tokens = string.match(promises[owner], '^(%S+) (%S+)$')
  return tonumber(requests), tonumber(tokens)
end

-- A promise is what a replica may serve without Redis, in addition to what it has in flight.
local function set_promise(owner, requests, tokens)
  local had_requests, had_tokens = promise_of(owner)
  figures.promised_requests = figures.promised_requests - had_requests + requests
  figures.promised_tokens = figures.promised_tokens - had_tokens + tokens
  if requests == had_requests and tokens == had_tokens then return end
  promises[owner] = text(requests) .. ' ' .. text(tokens)
  if requests == 0 and tokens == 0 then redis.call('HDEL', LANE, 'promise ' .. owner)
  else redis.call('HSET', LANE, 'promise ' .. owner, promises[owner]) end
end

local function charge(place, state)
  place.state = state
  figures.requests = figures.requests + 1
  figures.tokens = figures.tokens + place.cost
  store(place)
  count(place.id, 1)
end

local function release(place)
  if batch and is_batch(place.id) then batch.ended(place) end
  figures.requests = figures.requests - 1
  figures.tokens = figures.tokens - place.cost
  redis.call('ZREM', GRANTS, place.id)
  redis.call('HDEL', PLACES, place.id)
  count(place.id, -1)
end

local function enqueue(place, due_at)
  place.state = 'queued'
  redis.call('ZADD', QUEUE, text(place.number), place.id)
  redis.call('ZADD', DUE, text(due_at), 'wait ' .. place.id)
  store(place)
  count(place.id, 1)
end

local function dequeue(place)
  if batch then batch.uncover(place) end
  redis.call('ZREM', QUEUE, place.id)
  redis.call('ZREM', DUE, 'wait ' .. place.id)
  redis.call('HDEL', PLACES, place.id)
  count(place.id, -1)
end

local function send(place, event)
  notify(place.owner, LANE .. '\n' .. place.id .. '\n' .. event)
end

local function refuse(place, kind)
  dequeue(place)
  send(place, kind)
end

-- For a place that has waited.
local function grant(place)
  charge(place, 'granted')
  redis.call('ZADD', GRANTS, text(now + ACKNOWLEDGE_WITHIN), place.id)
  send(place, 'granted ' .. text(now - place.number))
end

-- The replica knows that the place was granted.
local function acknowledge(place)
  place.state = 'in_flight'
  store(place)
  redis.call('ZREM', GRANTS, place.id)
end

local function fits(cost)
  return figures.requests < limits.requests and figures.tokens + cost <= limits.tokens
end

-- Whether a request fits next to what was promised to other replicas. Its cost is deducted from its own replica's promise.
local function fits_beside_promises(owner, cost)
  if figures.promised_requests == 0 and figures.promised_tokens == 0 then return true end
  local requests, tokens = promise_of(owner)
  local free_requests = limits.requests - figures.requests - (figures.promised_requests - requests)
  local free_tokens = limits.tokens - figures.tokens - (figures.promised_tokens - tokens)
  if free_requests < 1 or free_tokens < cost then return false end
  set_promise(owner, math.min(requests, free_requests - 1), math.min(tokens, free_tokens - cost))
  return true
end

-- Asks every replica to return its promise, because a request needs the capacity. Replicas answer with a heartbeat.
local function recall()
  if now < figures.recalled_at + RECALL_AGAIN then return end
  figures.recalled_at = now
  local fields = redis.call('HKEYS', LANE)
  for _, field in ipairs(fields) do
    local owner = string.match(field, '^promise (.+)$')
    if owner then notify(owner, LANE .. '\n\nrecall') end
  end
end

local function is_quiet()
  return now < figures.quiet_until
end

-- Admits strictly from the head: a head that does not fit holds back everyone behind it.
local function pump()
  if is_quiet() then return end
  local head = redis.call('ZRANGE', QUEUE, 0, 0)[1]
  while head do
    local place = place_of(head)
    if place.cost > limits.tokens then
      refuse(place, 'too_large')
    elseif not fits(place.cost) then
      return
    elseif not fits_beside_promises(place.owner, place.cost) then
      return recall()
    else
      dequeue(place)
      grant(place)
    end
    head = redis.call('ZRANGE', QUEUE, 0, 0)[1]
  end
end

-- Removes a replica's queued places and unacknowledged grants. What it has in flight still counts, because the replica may
-- only be slow. Scripts ignore the replica until it joins again and sends all that it has.
local function fence(owner)
  local stored = redis.call('HGETALL', PLACES)
  for index = 1, #stored, 2 do
    local place = place_of(stored[index])
    if place.owner == owner and place.state == 'queued' then dequeue(place) end
    if place.owner == owner and place.state == 'granted' then release(place) end
  end
  if batch then batch.remove_waiting(owner) end
  redis.call('HDEL', LANE, 'member ' .. owner)
end

-- Removes a replica and everything that it has.
local function remove_replica(owner)
  fence(owner)
  local stored = redis.call('HGETALL', PLACES)
  for index = 1, #stored, 2 do
    local place = place_of(stored[index])
    if place.owner == owner then release(place) end
  end
  set_promise(owner, 0, 0)
  redis.call('ZREM', DUE, 'lease ' .. owner)
end

local function expire(due)
  local what, id = string.match(due, '^(%S+) (.+)$')
  if what == 'lease' then remove_replica(id) else refuse(place_of(id), 'overloaded') end
end

local function first_of(set)
  return redis.call('ZRANGEBYSCORE', set, '-inf', text(now), 'LIMIT', 0, 1)[1]
end

-- Expires first, so that capacity freed too late does not admit a request that has waited beyond the maximum.
local function settle()
  local due = first_of(DUE)
  while due do
    expire(due)
    due = first_of(DUE)
  end
  if batch then batch.expire() end
  local unacknowledged = first_of(GRANTS)
  while unacknowledged do
    fence(place_of(unacknowledged).owner)
    unacknowledged = first_of(GRANTS)
  end
  pump()
  if batch then
    batch.make_way()
    batch.pump()
  end
end
