-- The clock and the messages of a lane. The simulation replaces this file to run in virtual time.

-- Redis' own time in microseconds, so that differences between the replicas' clocks do not matter.
local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function notify(replica, message)
  redis.call('PUBLISH', 'weir:told:' .. replica, message)
end
