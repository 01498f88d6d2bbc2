-- The figures of the lane at one instant: limits, requests, tokens, depth of the queue, replicas.
local members = 0
for _, field in ipairs(redis.call('HKEYS', LANE)) do
  if string.find(field, '^member ') then members = members + 1 end
end
return { read[1] or '', read[2] or '', read[3] or '', read[4] or '', figures.requests, figures.tokens,
  redis.call('ZCARD', QUEUE), members }
