-- A replica joins, or joins again, and sends everything that it has in the lane. ARGV: 3 the epoch, 4 how long a new epoch
-- admits no requests, 5 the lease, 6 to 10 the limits, 11 whether these limits replace the stored ones, 12 and 13 the
-- replica's promise (requests, tokens), then four values for each place: id, 'in_flight' or 'queued', cost, and for a queued
-- place 'NUMBER LEFT' or '-AGE LEFT': its number, or how long ago it arrived, and how long it may still wait.
-- Replaces what an earlier incarnation had. A new epoch starts empty, because Redis may have lost data, and the replicas
-- know what they have. Returns how long from now no requests are admitted.
if redis.call('HGET', LANE, 'epoch') ~= ARGV[3] then
  redis.call('DEL', LANE, QUEUE, DUE, GRANTS, PLACES)
  redis.call('HSET', LANE, 'epoch', ARGV[3])
  for name in pairs(figures) do figures[name] = 0 end
  promises = { [replica] = '0 0' }
  figures.quiet_until = now + tonumber(ARGV[4])
  limits = { per_workspace = -1 }
end
if not limits.tokens or ARGV[11] == '1' then
  set_limits(6)
end

remove_replica(replica)
redis.call('HSET', LANE, 'member ' .. replica, incarnation)
redis.call('ZADD', DUE, text(now + tonumber(ARGV[5])), 'lease ' .. replica)
set_promise(replica, tonumber(ARGV[12]), tonumber(ARGV[13]))
for index = 14, #ARGV, 4 do
  local place = { id = ARGV[index], owner = replica, cost = tonumber(ARGV[index + 2]), number = 0 }
  if ARGV[index + 1] == 'in_flight' then
    charge(place, 'in_flight')
  else
    local number, left = string.match(ARGV[index + 3], '^(%S+) (%S+)$')
    number = tonumber(number)
    place.number = number < 0 and now + number or number
    figures.last_number = math.max(figures.last_number, place.number)
    enqueue(place, now + tonumber(left))
  end
end
count_again()
settle()
save()
return math.max(0, figures.quiet_until - now)
