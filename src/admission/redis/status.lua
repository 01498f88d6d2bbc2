-- The figures of the lane at one instant: limits, requests, tokens, depth of the queue, replicas.
local members = 0
for _, field in ipairs(redis.call('HKEYS', LANE)) do
  if string.find(field, '^member ') then members = members + 1 end
end
if not limits.tokens then return { '' } end
return { text(limits.tokens), text(limits.requests), text(limits.depth), text(limits.wait), figures.requests,
  figures.tokens, redis.call('ZCARD', QUEUE), members }
