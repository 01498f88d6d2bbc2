-- What a lane needs of the world around it. The simulation replaces this part by one with a clock of its own.

-- Redis' own time in microseconds, so that the clocks of replicas do not matter.
local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function tell(replica, message)
  redis.call('PUBLISH', 'weir:told:' .. replica, message)
end
