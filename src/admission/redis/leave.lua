-- A request leaves the queue (cancel) or gives back exactly its charge (release). ARGV: 3 the id.
-- For any other place it does nothing, so that leaving again, or too late, is harmless.
if not is_member then return 0 end
local place = place_of(ARGV[3])
if place and place.owner == replica then
  if place.state == 'queued' then dequeue(place) else release(place) end
end
settle()
save()
return 1
