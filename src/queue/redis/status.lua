-- Returns the state of the lane at one instant: limits, requests and tokens in flight, queue depth, number of replicas,
-- how long the head of the queue has waited, and of batch places the requests and tokens in flight and how many wait.
local members = 0
for _, field in ipairs(redis.call('HKEYS', LANE)) do
  if string.find(field, '^member ') then members = members + 1 end
end
if not limits.tokens then return { '' } end
local head = redis.call('ZRANGE', QUEUE, 0, 0, 'WITHSCORES')
local oldest_wait = head[2] and math.max(0, now - tonumber(head[2])) or 0
local batch_requests, batch_tokens, batch_queued = 0, 0, 0
if batch then batch_requests, batch_tokens, batch_queued = batch.load() end
return { text(limits.tokens), text(limits.requests), text(limits.depth), text(limits.wait),
  text(limits.per_workspace), figures.requests, figures.tokens, redis.call('ZCARD', QUEUE), members, text(oldest_wait),
  batch_requests, batch_tokens, batch_queued }
