-- A request leaves the queue (cancel) or returns exactly its charge (release). ARGV: 3 the id.
-- Ignores an unknown id and a place of another replica, so that leaving twice or too late is harmless.
if not is_member then return 0 end
local place = place_of(ARGV[3])
if place and place.owner == replica then
  if place.state == 'queued' then dequeue(place) else release(place) end
elseif batch then
  batch.cancel(ARGV[3])
end
settle()
save()
return 1
