-- Counts one request of a subject in the current minute of Redis' own clock. KEYS: 1 the subject's count, 'WINDOW COUNT'.
-- ARGV: 1 the limit, 2 how many requests to count: 1, or 0 to only read the count.
-- Returns whether it was counted, the count, and the time in milliseconds.
local time = redis.call('TIME')
local window = math.floor(tonumber(time[1]) / 60)
local held_window, count = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (%d+)$')
count = tonumber(held_window) == window and tonumber(count) or 0
local accepted = 0
if ARGV[2] == '1' and count < tonumber(ARGV[1]) then
  accepted = 1
  count = count + 1
  redis.call('SET', KEYS[1], string.format('%d %d', window, count), 'EX', 120)
end
return { accepted, count, string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)) }
