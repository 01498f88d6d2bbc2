-- A replica joins, or joins again, with everything that it has. ARGV: 3 the epoch, 4 how long nobody is admitted,
-- 5 the lease, 6 to 9 the limits, 10 whether they replace others, 11 and 12 its promise (requests, tokens), then four
-- for each place: id, 'in_flight' or 'queued', cost, and for a queued one 'NUMBER LEFT' or '-AGE LEFT': its number, or
-- how long ago it arrived, and how long it may still wait.
-- What an earlier incarnation had is replaced by this. A new epoch starts from nothing: Redis may have lost anything,
-- and the replicas know what they have. Returns how long nobody is admitted from now.
if redis.call('HGET', LANE, 'epoch') ~= ARGV[3] then
  redis.call('DEL', LANE, QUEUE, DUE, GRANTS, PLACES)
  redis.call('HSET', LANE, 'epoch', ARGV[3])
  for name in pairs(figures) do figures[name] = 0 end
  promises = { [replica] = '0 0' }
  figures.quiet_until = now + tonumber(ARGV[4])
  limits = {}
end
if not limits.tokens or ARGV[10] == '1' then
  set_limits(6)
end

bury(replica)
redis.call('HSET', LANE, 'member ' .. replica, incarnation)
redis.call('ZADD', DUE, text(now + tonumber(ARGV[5])), 'lease ' .. replica)
set_promise(replica, tonumber(ARGV[11]), tonumber(ARGV[12]))
for index = 13, #ARGV, 4 do
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
settle()
save()
return math.max(0, figures.quiet_until - now)
