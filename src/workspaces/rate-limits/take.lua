-- Counts one request in the current minute of Redis' own clock. KEYS: 1 the subject's count, 'WINDOW COUNT'; 2 that of its
-- key, if the key has a limit. ARGV: 1 the subject's limit, 2 how many requests to count: 1, or 0 to only read the counts;
-- 3 the key's limit. A request counts in both or in neither.
-- Returns whether it was counted, the subject's count, the time in milliseconds, and the key's count.
local time = redis.call('TIME')
local window = math.floor(tonumber(time[1]) / 60)
local limits = { tonumber(ARGV[1]), tonumber(ARGV[3]) }
local counts = {}
local has_room = true
for index, place in ipairs(KEYS) do
  local held_window, count = string.match(redis.call('GET', place) or '', '^(%d+) (%d+)$')
  counts[index] = tonumber(held_window) == window and tonumber(count) or 0
  has_room = has_room and counts[index] < limits[index]
end
local accepted = 0
if ARGV[2] == '1' and has_room then
  accepted = 1
  for index, place in ipairs(KEYS) do
    counts[index] = counts[index] + 1
    redis.call('SET', place, string.format('%d %d', window, counts[index]), 'EX', 120)
  end
end
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
return { accepted, counts[1], now, counts[2] }
