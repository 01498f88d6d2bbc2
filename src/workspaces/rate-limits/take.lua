-- Counts in the current minute of Redis' own clock. KEYS: counts as 'WINDOW COUNT', of requests or of tokens. ARGV: 1 how much
-- to count: 1 request, or the tokens of a settled one, or 0 to only read the counts; 2 in how many of the counts, from the first
-- on; then the limit of each. It counts in all of these or, if any count has reached its limit, in none.
-- Returns whether it was counted, the time in milliseconds, and the counts.
local time = redis.call('TIME')
local window = math.floor(tonumber(time[1]) / 60)
local amount = tonumber(ARGV[1])
local counts = {}
local has_room = true
for index, place in ipairs(KEYS) do
  local held_window, count = string.match(redis.call('GET', place) or '', '^(%d+) (%d+)$')
  counts[index] = tonumber(held_window) == window and tonumber(count) or 0
  has_room = has_room and counts[index] < tonumber(ARGV[2 + index])
end
local accepted = 0
if amount > 0 and has_room then
  accepted = 1
  for index = 1, tonumber(ARGV[2]) do
    counts[index] = counts[index] + amount
    redis.call('SET', KEYS[index], string.format('%d %d', window, counts[index]), 'EX', 120)
  end
end
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
return { accepted, now, unpack(counts) }
