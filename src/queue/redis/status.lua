-- Returns the state of the lane at one instant: limits, requests and tokens in flight, queue depth, number of replicas, and
-- how long the head of the queue has waited.
local members = 0
for _, field in ipairs(redis.call('HKEYS', LANE)) do
  if string.find(field, '^member ') then members = members + 1 end
end
if not limits.tokens then return { '' } end
local head = redis.call('ZRANGE', QUEUE, 0, 0, 'WITHSCORES')
local oldest_wait = head[2] and math.max(0, now - tonumber(head[2])) or 0
return { text(limits.tokens), text(limits.requests), text(limits.depth), text(limits.wait),
  text(limits.per_workspace), figures.requests, figures.tokens, redis.call('ZCARD', QUEUE), members, text(oldest_wait) }
