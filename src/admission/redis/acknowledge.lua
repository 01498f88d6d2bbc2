-- The replica has heard of a grant and takes it. ARGV: 3 the id. Returns whether the place is its own:
-- it is not if the grant was taken back. Acknowledging again changes nothing.
local place = is_member and place_of(ARGV[3])
if not place or place.owner ~= replica or place.state == 'queued' then return 0 end
if place.state == 'granted' then
  place.state = 'in_flight'
  store(place)
  redis.call('ZREM', GRANTS, place.id)
end
return 1
