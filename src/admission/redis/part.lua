-- The replica leaves the lane, and everything that it had goes with it.
if not is_member then return 0 end
bury(replica)
settle()
save()
return 1
