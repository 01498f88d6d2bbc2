-- What an account needs of the world around it. The simulation replaces this part by one with a clock of its own.

-- Redis' own time in milliseconds, so that the clocks of replicas do not matter.
local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
