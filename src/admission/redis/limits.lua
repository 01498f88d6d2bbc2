-- New limits from now on. They evict nobody. ARGV: 3 to 6 the limits.
if not is_member then return 0 end
set_limits(3)
settle()
save()
return 1
