-- A request arrives. ARGV: 3 its id, 4 its cost. Returns the decision, or 'queued' and the request's number.
-- Entering again changes nothing and returns the same answer.
if not is_member then return { 'unknown' } end
settle()
local id, cost = ARGV[3], tonumber(ARGV[4])

local function decide()
  local known = place_of(id)
  if known and known.state == 'queued' then return { 'queued', text(known.number) } end
  if known then
    acknowledge(known)
    return { 'admitted' }
  end
  if cost > limits.tokens then return { 'too_large' } end
  if is_workspace_full(id) then return { 'workspace_queue_full' } end
  local depth = redis.call('ZCARD', QUEUE)
  local place = { id = id, owner = replica, cost = cost, number = math.max(now, figures.last_number + 1) }
  local has_room = depth == 0 and not is_quiet() and fits(cost)
  if has_room and fits_beside_promises(replica, cost) then
    charge(place, 'in_flight')
    return { 'admitted' }
  end
  if depth >= limits.depth and not (batch and batch.has_queue_room(depth, cost)) then return { 'queue_full' } end
  if limits.wait == 0 then return { 'overloaded' } end
  figures.last_number = place.number
  enqueue(place, now + limits.wait)
  if has_room then recall() end
  if batch then batch.make_way() end
  return { 'queued', text(place.number) }
end

local decision = decide()
save()
return decision
