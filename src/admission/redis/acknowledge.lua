-- The replica has heard of grants and takes them. ARGV: 3 and following the ids. Returns whether all places are its own:
-- one is not if its grant was taken back. Acknowledging again changes nothing.
if not is_member then return 0 end
local all = 1
for index = 3, #ARGV do
  local place = place_of(ARGV[index])
  if not place or place.owner ~= replica or place.state == 'queued' then
    all = 0
  elseif place.state == 'granted' then
    place.state = 'in_flight'
    store(place)
    redis.call('ZREM', GRANTS, place.id)
  end
end
return all
