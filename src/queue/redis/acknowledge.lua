-- A replica acknowledges grants. ARGV: from 3 on, the ids. Returns 1 if all these places still belong to the replica, and 0
-- if one was revoked. Acknowledging again changes nothing.
if not is_member then return 0 end
local all = 1
for index = 3, #ARGV do
  local place = place_of(ARGV[index])
  if not place or place.owner ~= replica or place.state == 'queued' then
    all = 0
  elseif place.state == 'granted' then
    acknowledge(place)
  end
end
return all
