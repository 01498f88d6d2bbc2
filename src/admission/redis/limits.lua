-- New limits from now on. They evict nobody. ARGV: 3 to 6 the limits.
if not is_member then return 0 end
limits = {
  tokens = tonumber(ARGV[3]), requests = tonumber(ARGV[4]), depth = tonumber(ARGV[5]), wait = tonumber(ARGV[6]),
}
redis.call('HSET', LANE, 'token_budget', ARGV[3], 'max_concurrent_requests', ARGV[4], 'max_queue_depth', ARGV[5],
  'max_wait', ARGV[6])
settle()
save()
return 1
