-- A replica leaves the lane. Everything that it had there is freed.
if not is_member then return 0 end
remove_replica(replica)
settle()
save()
return 1
