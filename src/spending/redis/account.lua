-- The spending of one workspace over all replicas. KEYS, with one hash tag: 1 the account, as JSON, 2 the hash of the epoch.
-- ARGV: 1 what a replica says, as JSON.
--
-- The account has the months that replicas are in, by their own clocks. Each has `base`, which is the sum in the database
-- when it was last read, and for each replica what it has settled in that month so far, in full: S, F and P. P is the
-- part of S that was in the database for certain when the replica said so, and F is the part that `base` has. So
--   spent = base + the sum of S - F,
-- and a new request may cost limit - spent - all that is held. `base` goes away when it may lack something that F has.
-- A replica that says nothing any more still counts: see KEPT.
local said = cjson.decode(ARGV[1])
local epoch = redis.call('HMGET', KEYS[2], 'epoch', 'quiet_until')
-- Somebody who has not noticed that Redis lost its data.
if epoch[1] ~= said.epoch then return cjson.encode({ state = 'unknown' }) end
local now = clock()
local quiet = math.max(0, math.ceil(tonumber(epoch[2]) / 1000) - now)

-- How long a silent replica counts. Its journal may still reach the database with all that it held.
local KEPT = 3600000
-- Forgotten when nobody has said anything for so long: the database has it all.
local EXPIRES = 86400000

-- Amounts are up to 10^21, more than a number has digits for: text outside, two halves inside.
local BILLION = 1000000000
local function add(sum, text, sign)
  sum.high = sum.high + sign * (tonumber(string.sub(text, 1, -10)) or 0)
  sum.low = sum.low + sign * tonumber(string.sub(text, -9))
end

local function settled_halves(sum)
  return sum.high + math.floor(sum.low / BILLION), sum.low % BILLION
end

local function text_of(sum)
  local high, low = settled_halves(sum)
  if high < 0 then return '0' end
  if high == 0 then return string.format('%.0f', low) end
  return string.format('%.0f%09.0f', high, low)
end

local function is_at_most(sum, text)
  local rest = { high = -sum.high, low = -sum.low }
  add(rest, text, 1)
  return settled_halves(rest) >= 0
end

local stored = redis.call('GET', KEYS[1])
local account = stored and cjson.decode(stored) or { epoch = said.epoch, generation = 0, members = {}, months = {} }

-- The sums have to be read again. Whoever is reading them now may have missed something.
local function forget_sums()
  account.generation = account.generation + 1
  for _, it in pairs(account.months) do it.base = nil end
end

-- What a replica has that may not be in the database.
local function open_of(name, member)
  local sum = { high = 0, low = 0 }
  add(sum, member.held, 1)
  local it = account.months[member.month]
  local count = it and it.counts[name]
  if count then
    add(sum, count[1], 1)
    add(sum, count[3], -1)
  end
  return text_of(sum)
end

-- In a new epoch this is old, or a part of it is gone. It counts as hearsay until each replica has said what is true now.
if account.epoch ~= said.epoch then
  account.epoch = said.epoch
  for name, member in pairs(account.members) do
    member.held = open_of(name, member)
    member.is_hearsay = true
  end
  for _, it in pairs(account.months) do it.counts = {} end
  forget_sums()
end

local function spent_in(it)
  local sum = { high = 0, low = 0 }
  add(sum, it.base, 1)
  for _, count in pairs(it.counts) do
    add(sum, count[1], 1)
    add(sum, count[2], -1)
  end
  return sum
end

local function held_by_all()
  local sum = { high = 0, low = 0 }
  for _, member in pairs(account.members) do add(sum, member.held, 1) end
  return sum
end

local function save()
  redis.call('SET', KEYS[1], cjson.encode(account), 'PX', EXPIRES)
end
