-- Changes the limits. Requests that are already queued or in flight stay. ARGV: 3 to 8 the limits.
if not is_member then return 0 end
set_limits(3)
settle()
save()
return 1
