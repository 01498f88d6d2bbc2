-- A replica says everything that it has in the account, and what it wants: a request begins, is raised or is settled, or
-- a second has passed. It says: epoch, replica, owner (of its journal), predecessor (the owner of the journal that it found
-- and brought into the database when it started), turn (the number of this call), month, next_month, held, counts (for each
-- month, S and P), wants (a list of amount and limit), limit (reported when it is reached), known (in its first call of an
-- epoch: what it last knew of others).
-- All of that is in full, so a call replaces the one before it, and one that comes late or twice changes nothing.
-- Returns for each want whether it is held now, the months whose sums are to be read (first, if nothing could be decided),
-- and the figures.
local me = account.members[said.replica]
if me and me.turn >= said.turn then return cjson.encode({ state = 'unknown' }) end

local function counts_for_something(name)
  if account.members[name].held ~= '0' then return true end
  for _, it in pairs(account.months) do
    local count = it.counts[name]
    if count and count[1] ~= count[2] then return true end
  end
  return false
end

local function forget(name)
  local is_counted = counts_for_something(name)
  account.members[name] = nil
  for _, it in pairs(account.months) do it.counts[name] = nil end
  if is_counted then forget_sums() end
end

local accounted = { [said.owner] = true, [said.predecessor] = true }
for name, member in pairs(account.members) do
  -- All that a predecessor left is in the database.
  if member.owner == said.predecessor or member.heard + KEPT < now then
    forget(name)
  else
    accounted[member.owner] = true
    accounted[member.predecessor] = true
  end
end

-- What the caller heard of replicas that have not said anything in this epoch: those that do not come back still count.
for name, it in pairs(said.known) do
  local member = account.members[name]
  if member and member.is_hearsay then
    local sum = { high = 0, low = 0 }
    add(sum, member.held, 1)
    if is_at_most(sum, it[3]) then member.held = it[3] end
  elseif not accounted[it[1]] then
    account.members[name] =
      { owner = it[1], predecessor = '', turn = 0, heard = now, month = it[2], held = it[3], is_hearsay = true }
  end
end

account.members[said.replica] = {
  owner = said.owner, predecessor = said.predecessor, turn = said.turn, heard = now, month = said.month,
  next_month = said.next_month, held = said.held,
}

-- A month is over when no replica is in it. It is kept before the first one is: nothing is settled in it by then, so its
-- sum, read now, has no row that is also counted.
local months, is_begun = {}, {}
local function keep(month)
  months[month] = months[month] or account.months[month] or { counts = {}, again_at = 0 }
end
for _, member in pairs(account.members) do
  keep(member.month)
  is_begun[member.month] = true
  if member.next_month then keep(member.next_month) end
end
account.months = months
for month, told in pairs(said.counts) do
  local it = months[month]
  local count = it and it.counts[said.replica]
  if count then
    count[1], count[3] = told[1], told[2]
  elseif it then
    -- What is in the database may not be in sums that were read before.
    it.counts[said.replica] = { told[1], told[2], told[2] }
    if told[2] ~= '0' then forget_sums() end
  end
end

-- A request that begins in this month may be settled in the next one, and other replicas may be there already.
local ahead, unread = {}, {}
for month, it in pairs(account.months) do
  if is_begun[month] and tonumber(month) >= tonumber(said.month) then
    ahead[#ahead + 1] = it
    if not it.base then unread[#unread + 1] = month end
  end
end

local function is_held(amount, limit)
  for _, it in ipairs(ahead) do
    local sum = spent_in(it)
    for _, member in pairs(account.members) do add(sum, member.held, 1) end
    add(sum, amount, 1)
    if not is_at_most(sum, limit) then return false end
  end
  local held = { high = 0, low = 0 }
  add(held, account.members[said.replica].held, 1)
  add(held, amount, 1)
  account.members[said.replica].held = text_of(held)
  return true
end

local answer = { state = 'told', quiet = quiet, generation = account.generation, held = text_of(held_by_all()) }
local this_month = account.months[said.month]
if #unread == 0 then
  local decisions = {}
  if quiet == 0 then
    for index, want in ipairs(said.wants) do decisions[index] = is_held(want[1], want[2]) and '1' or '0' end
  end
  answer.decisions = table.concat(decisions)
  local spent = spent_in(this_month)
  answer.spent = text_of(spent)
  if said.limit and not is_at_most(spent, said.limit) or said.limit == answer.spent then
    answer.is_reached = this_month.reported ~= said.limit
    this_month.reported = said.limit
  end
end

-- Whether everything that was settled is in the database, so that its sum may replace what is counted here. Sums may also
-- change by themselves, when rows are corrected.
local function is_foldable()
  if not this_month.base or now < this_month.again_at then return false end
  local is_worth_it = now >= this_month.read_at + 60000
  for name, count in pairs(this_month.counts) do
    if count[1] ~= count[3] and account.members[name].heard + 5000 > now then return false end
    if count[1] ~= count[2] then is_worth_it = true end
  end
  return is_worth_it
end
if #said.wants == 0 and #unread == 0 then
  if is_foldable() then
    unread[1] = said.month
  elseif not months[said.next_month].base then
    unread[1] = said.next_month
  end
end

-- What was in the database before the sums are read will be in them.
answer.unread = {}
for _, month in ipairs(unread) do
  local echo = {}
  for name, count in pairs(account.months[month].counts) do echo[name] = { count[1], count[3] } end
  answer.unread[month] = echo
end

-- What others have that may not be in the database: for the next epoch, if they should not live to see it.
answer.known = {}
for name, member in pairs(account.members) do
  local open = open_of(name, member)
  if name ~= said.replica and open ~= '0' then answer.known[name] = { member.owner, member.month, open } end
end
save()
return cjson.encode(answer)
