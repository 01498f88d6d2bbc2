-- The answer of a batch place in flight has begun: from now on the place is not preempted. ARGV: 3 the id.
-- If it was preempted and its replica did not know it yet, others are preempted instead.
if not is_member then return 0 end
local place = place_of(ARGV[3])
if batch and place and place.owner == replica and batch.keep(place) then settle() end
save()
return 1
