-- External dependencies of the account scripts. The simulation replaces this file with its own clock.

-- Redis' time in milliseconds, so that differences between the clocks of replicas do not matter.
local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
