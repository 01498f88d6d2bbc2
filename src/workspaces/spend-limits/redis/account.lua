-- Spending accounts over all replicas: of a workspace, and of its keys that have a spend limit. KEYS, with one hash tag:
-- 1 the hash of the epoch, 2 and on the accounts, as JSON. ARGV: 1 what a replica sends, as JSON.
--
-- An account has an entry for each month that a replica is in, by its own clock. The months of the account for a key's daily
-- limit are days. An entry has `base`, the database's sum when it was last read, and three totals for each replica. S is what
-- the replica has settled in the month so far. P is the part of S that was certainly in the database when the replica
-- reported it. F is the part of S that `base` includes. So
--   spent = base + the sum of S - F,
-- and a new request may cost limit - spent - all that is held. `base` is dropped when it may lack something that F has.
-- A replica that has stopped reporting still counts: see KEPT. Stored fields keep their names (`heard` is the time of the last report,
-- `is_hearsay` marks what only another replica has reported), because replicas of earlier versions read them.
local sent = cjson.decode(ARGV[1])
local epoch = redis.call('HMGET', KEYS[1], 'epoch', 'quiet_until')
-- The replica has not noticed yet that Redis lost its data.
if epoch[1] ~= sent.epoch then return cjson.encode({ state = 'ignored' }) end
local now = clock()
local quiet = math.max(0, math.ceil(tonumber(epoch[2]) / 1000) - now)

-- How long a replica counts after its last report, in milliseconds. Its journal may still reach the database with everything it held.
local KEPT = 3600000
-- The account expires after this long without a report: by then the database has everything.
local EXPIRES = 86400000

-- Amounts can reach 10^21, which a Lua number cannot hold exactly. They are stored as text and added in two halves.
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

-- The sums must be read again. A new generation makes checkpoints of earlier reads invalid.
local function forget_sums(account)
  account.generation = account.generation + 1
  for _, it in pairs(account.months) do it.base = nil end
end

-- What a replica holds or has settled that may not be in the database.
local function open_of(account, name, member)
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

local function opened(place)
  local stored = redis.call('GET', place)
  local account = stored and cjson.decode(stored) or { epoch = sent.epoch, generation = 0, members = {}, months = {} }
  -- In a new epoch this data is outdated or incomplete. It is provisional (is_hearsay) until each replica has reported again.
  if account.epoch ~= sent.epoch then
    account.epoch = sent.epoch
    for name, member in pairs(account.members) do
      member.held = open_of(account, name, member)
      member.is_hearsay = true
    end
    for _, it in pairs(account.months) do it.counts = {} end
    forget_sums(account)
  end
  return account
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

local function held_by_all(account)
  local sum = { high = 0, low = 0 }
  for _, member in pairs(account.members) do add(sum, member.held, 1) end
  return sum
end

local function save(place, account)
  redis.call('SET', place, cjson.encode(account), 'PX', EXPIRES)
end
