-- Stores the complete state of a replica, and makes the reservations that it asks for. Called when a request begins, is
-- raised or is settled, and once a second. Report: epoch, replica, owner (of its journal), predecessor (the owner of the
-- journal that it found and delivered to the database when it started), turn (the sequence number of this call), month,
-- next_month, held, counts (S and P of each month), wants (the reservations, each with amount and limit), limit (reported
-- when it is reached), known (in the first call of an epoch: the last known state of the other replicas).
-- Each report is complete, so it replaces the one before it, and a late or repeated one changes nothing.
-- Returns whether each reservation was made, the months whose sums must be read (before anything is decided, if `decisions`
-- is missing), and the figures.
local me = account.members[report.replica]
if me and me.turn >= report.turn then return cjson.encode({ state = 'unknown' }) end

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

local accounted = { [report.owner] = true, [report.predecessor] = true }
for name, member in pairs(account.members) do
  -- Everything that a predecessor left is in the database.
  if member.owner == report.predecessor or member.heard + KEPT < now then
    forget(name)
  else
    accounted[member.owner] = true
    accounted[member.predecessor] = true
  end
end

-- Replicas that the caller knew and that have not reported in this epoch. They count even if they never come back.
for name, it in pairs(report.known) do
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

account.members[report.replica] = {
  owner = report.owner, predecessor = report.predecessor, turn = report.turn, heard = now, month = report.month,
  next_month = report.next_month, held = report.held,
}

-- A month is dropped when no replica is in it any more. The next month is kept before the first replica enters it: nothing
-- is settled in it yet, so a sum read now includes no row that is also counted here.
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
for month, reported in pairs(report.counts) do
  local it = months[month]
  local count = it and it.counts[report.replica]
  if count then
    count[1], count[3] = reported[1], reported[2]
  elseif it then
    -- Rows that are in the database now may be missing from sums that were read earlier.
    it.counts[report.replica] = { reported[1], reported[2], reported[2] }
    if reported[2] ~= '0' then forget_sums() end
  end
end

-- A request that begins in this month may be settled in the next one, which other replicas may have entered already.
local ahead, unread = {}, {}
for month, it in pairs(account.months) do
  if is_begun[month] and tonumber(month) >= tonumber(report.month) then
    ahead[#ahead + 1] = it
    if not it.base then unread[#unread + 1] = month end
  end
end

local function reserve(amount, limit)
  for _, it in ipairs(ahead) do
    local sum = spent_in(it)
    for _, member in pairs(account.members) do add(sum, member.held, 1) end
    add(sum, amount, 1)
    if not is_at_most(sum, limit) then return false end
  end
  local held = { high = 0, low = 0 }
  add(held, account.members[report.replica].held, 1)
  add(held, amount, 1)
  account.members[report.replica].held = text_of(held)
  return true
end

local answer = { state = 'told', quiet = quiet, generation = account.generation, held = text_of(held_by_all()) }
local this_month = account.months[report.month]
if #unread == 0 then
  local decisions = {}
  if quiet == 0 then
    for index, wanted in ipairs(report.wants) do decisions[index] = reserve(wanted[1], wanted[2]) and '1' or '0' end
  end
  answer.decisions = table.concat(decisions)
  local spent = spent_in(this_month)
  answer.spent = text_of(spent)
  if report.limit and not is_at_most(spent, report.limit) or report.limit == answer.spent then
    answer.is_reached = this_month.reported ~= report.limit
    this_month.reported = report.limit
  end
end

-- Whether everything that was settled is in the database, so that its sum can replace the totals counted here. It is also
-- read again from time to time, because corrections of rows change it.
local function can_checkpoint()
  if not this_month.base or now < this_month.again_at then return false end
  local is_worth_it = now >= this_month.read_at + 60000
  for name, count in pairs(this_month.counts) do
    if count[1] ~= count[3] and account.members[name].heard + 5000 > now then return false end
    if count[1] ~= count[2] then is_worth_it = true end
  end
  return is_worth_it
end
if #report.wants == 0 and #unread == 0 then
  if can_checkpoint() then
    unread[1] = report.month
  elseif not months[report.next_month].base then
    unread[1] = report.next_month
  end
end

-- The sums are read after this answer, so they include everything that is in the database now.
answer.unread = {}
for _, month in ipairs(unread) do
  local echo = {}
  for name, count in pairs(account.months[month].counts) do echo[name] = { count[1], count[3] } end
  answer.unread[month] = echo
end

-- What other replicas hold or have settled that may not be in the database. The caller passes it on to the next epoch, in
-- case those replicas do not survive.
answer.known = {}
for name, member in pairs(account.members) do
  local open = open_of(name, member)
  if name ~= report.replica and open ~= '0' then answer.known[name] = { member.owner, member.month, open } end
end
save()
return cjson.encode(answer)
