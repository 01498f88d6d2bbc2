-- A replica joins, or joins again, and sends everything that it has in the lane. ARGV: 3 the epoch, 4 how long a new epoch
-- admits no requests, 5 the lease, 6 to 11 the limits, 12 whether these limits replace the stored ones, 13 and 14 the
-- replica's promise (requests, tokens), then four values for each place:
--   id
--   'in_flight' or 'queued', or for a batch place in flight also 'kept' or 'preempted'
--   cost
--   for a queued place 'NUMBER LEFT' or '-AGE LEFT': its number, or how long ago it arrived, and how long it may still wait;
--   for a batch place in flight how long ago it started
-- Replaces what an earlier incarnation had. A new epoch starts empty, because Redis may have lost data, and the replicas
-- know what they have. Returns how long from now no requests are admitted.
if redis.call('HGET', LANE, 'epoch') ~= ARGV[3] then
  redis.call('DEL', LANE, QUEUE, DUE, GRANTS, PLACES)
  redis.call('HSET', LANE, 'epoch', ARGV[3])
  for name in pairs(figures) do figures[name] = 0 end
  promises = { [replica] = '0 0' }
  figures.quiet_until = now + tonumber(ARGV[4])
  limits = { per_workspace = -1 }
  batch, batch_limits = nil, nil
end
if not limits.tokens or ARGV[12] == '1' then
  set_limits(6)
elseif not batch_limits then
  -- A replica of an earlier version has opened the lane.
  batch_limits = ARGV[11]
  redis.call('HSET', LANE, 'batch_limits', batch_limits)
end

remove_replica(replica)
redis.call('HSET', LANE, 'member ' .. replica, incarnation)
redis.call('ZADD', DUE, text(now + tonumber(ARGV[5])), 'lease ' .. replica)
set_promise(replica, tonumber(ARGV[13]), tonumber(ARGV[14]))
for index = 15, #ARGV, 4 do
  local place = { id = ARGV[index], owner = replica, cost = tonumber(ARGV[index + 2]), number = 0 }
  local state, position = ARGV[index + 1], ARGV[index + 3]
  if is_batch(place.id) then batch = batch or open_batch_places() end
  if state == 'queued' then
    local number, left = string.match(position, '^(%S+) (%S+)$')
    number = tonumber(number)
    place.number = number < 0 and now + number or number
    figures.last_number = math.max(figures.last_number, place.number)
    if is_batch(place.id) then batch.enqueue(place, tonumber(left))
    else enqueue(place, now + tonumber(left)) end
  else
    charge(place, 'in_flight')
    if is_batch(place.id) then batch.started(place, now - tonumber(position)) end
    if state == 'kept' then batch.keep(place) end
    if state == 'preempted' then batch.preempt(place) end
  end
end
count_again()
if batch then batch.count_again() end
settle()
save()
return math.max(0, figures.quiet_until - now)
