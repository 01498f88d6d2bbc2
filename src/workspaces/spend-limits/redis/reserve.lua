-- Stores the complete state of a replica in some accounts, and makes the reservations that it asks for. Called when a request
-- begins, is raised or is settled, and once a second. Sent: epoch, replica, owner (of its journal), predecessor (the owner of
-- the journal that it found and delivered to the database when it started), turn (the sequence number of this call),
-- accounts (a report for each) and wants (the reservations, each with its amount and its limits: the number of an account,
-- and the limit there). Report: opening (see take_opening), month, next_month, held, counts (S and P of each month), limit (reported when it is
-- reached), known (in the first call of an epoch: the last known state of the other replicas).
-- Each report is complete, so it replaces the one before it, and a late or repeated one changes nothing.
-- Returns for each reservation how many of its limits have room, in their order and up to the first without: if all have
-- room, it was made in all accounts. '?' means that it waits for a sum. Also returns for each account the months whose sums
-- must be read, and the figures.
local function counts_for_something(account, name)
  if account.members[name].held ~= '0' then return true end
  for _, it in pairs(account.months) do
    local count = it.counts[name]
    if count and count[1] ~= count[2] then return true end
  end
  return false
end

local function forget(account, name)
  local is_counted = counts_for_something(account, name)
  account.members[name] = nil
  for _, it in pairs(account.months) do it.counts[name] = nil end
  if is_counted then forget_sums(account) end
end

-- A replica closes an idle account when the database has everything that it settled there. When it opens the account again,
-- its totals begin at nothing, under a new number of the opening. The former totals are dropped, and a sum that is being
-- read must not be combined with them: a checkpoint would subtract the former P from the new S.
local function take_opening(account, report)
  local me = account.members[sent.replica]
  if me and me.opening == report.opening then return end
  if me then forget(account, sent.replica) end
  account.generation = account.generation + 1
end

local function take_members(account, report)
  local accounted = { [sent.owner] = true, [sent.predecessor] = true }
  for name, member in pairs(account.members) do
    -- Everything that a predecessor left is in the database.
    if member.owner == sent.predecessor or member.heard + KEPT < now then
      forget(account, name)
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

  account.members[sent.replica] = {
    owner = sent.owner, predecessor = sent.predecessor, turn = sent.turn, opening = report.opening, heard = now,
    month = report.month, next_month = report.next_month, held = report.held,
  }
end

-- Returns the months that replicas are in.
local function take_counts(account, report)
  -- A month is dropped when no replica is in it any more. The next month is kept before the first replica enters it:
  -- nothing is settled in it yet, so a sum read now includes no row that is also counted here.
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
    local count = it and it.counts[sent.replica]
    if count then
      count[1], count[3] = reported[1], reported[2]
    elseif it then
      -- Rows that are in the database now may be missing from sums that were read earlier.
      it.counts[sent.replica] = { reported[1], reported[2], reported[2] }
      if reported[2] ~= '0' then forget_sums(account) end
    end
  end
  return is_begun
end

local taken = {}
for index, report in ipairs(sent.accounts) do
  local account = opened(KEYS[index + 1])
  local me = account.members[sent.replica]
  if me and me.turn >= sent.turn then return cjson.encode({ state = 'ignored' }) end
  take_opening(account, report)
  take_members(account, report)
  local is_begun = take_counts(account, report)
  -- A request that begins in this month may be settled in the next one, which other replicas may have entered already.
  local ahead, unread = {}, {}
  for month, it in pairs(account.months) do
    if is_begun[month] and tonumber(month) >= tonumber(report.month) then
      ahead[#ahead + 1] = it
      if not it.base then unread[#unread + 1] = month end
    end
  end
  taken[index] =
    { account = account, report = report, ahead = ahead, unread = unread, held = text_of(held_by_all(account)) }
end

local function has_room(it, amount, limit)
  local account = it.account
  for _, month in ipairs(it.ahead) do
    local sum = spent_in(month)
    for _, member in pairs(account.members) do add(sum, member.held, 1) end
    add(sum, amount, 1)
    if not is_at_most(sum, limit) then return false end
  end
  return true
end

local function hold(account, amount)
  local held = { high = 0, low = 0 }
  add(held, account.members[sent.replica].held, 1)
  add(held, amount, 1)
  account.members[sent.replica].held = text_of(held)
end

local function reserve(amount, limits)
  if quiet > 0 then return '?' end
  for _, it in ipairs(limits) do
    if #taken[it[1]].unread > 0 then return '?' end
  end
  for position, it in ipairs(limits) do
    if not has_room(taken[it[1]], amount, it[2]) then return position - 1 end
  end
  for _, it in ipairs(limits) do hold(taken[it[1]].account, amount) end
  return #limits
end

local decisions = {}
for index, wanted in ipairs(sent.wants) do decisions[index] = reserve(wanted[1], wanted[2]) end

-- Whether everything that was settled is in the database, so that its sum can replace the totals counted here. It is also
-- read again from time to time, because corrections of rows change it.
local function can_checkpoint(account, month)
  if not month.base or now < month.again_at then return false end
  local is_worth_it = now >= month.read_at + 60000
  for name, count in pairs(month.counts) do
    if count[1] ~= count[3] and account.members[name].heard + 5000 > now then return false end
    if count[1] ~= count[2] then is_worth_it = true end
  end
  return is_worth_it
end

local function answer_about(it)
  local account, report, unread = it.account, it.report, it.unread
  local this_month = account.months[report.month]
  local answer = { generation = account.generation, held = it.held, unread = {}, known = {} }
  if #unread == 0 then
    local spent = spent_in(this_month)
    answer.spent = text_of(spent)
    if report.limit and not is_at_most(spent, report.limit) or report.limit == answer.spent then
      answer.is_reached = this_month.reported ~= report.limit
      this_month.reported = report.limit
    end
    if #sent.wants == 0 then
      if can_checkpoint(account, this_month) then
        unread[1] = report.month
      elseif not account.months[report.next_month].base then
        unread[1] = report.next_month
      end
    end
  end

  -- The sums are read after this answer, so they include everything that is in the database now.
  for _, month in ipairs(unread) do
    local echo = {}
    for name, count in pairs(account.months[month].counts) do echo[name] = { count[1], count[3] } end
    answer.unread[month] = echo
  end

  -- What other replicas hold or have settled that may not be in the database. The caller passes it on to the next epoch, in
  -- case those replicas do not survive.
  for name, member in pairs(account.members) do
    local open = open_of(account, name, member)
    if name ~= sent.replica and open ~= '0' then answer.known[name] = { member.owner, member.month, open } end
  end
  return answer
end

local answers = {}
for index, it in ipairs(taken) do
  answers[index] = answer_about(it)
  save(KEYS[index + 1], it.account)
end
return cjson.encode({ state = 'applied', quiet = quiet, decisions = table.concat(decisions), accounts = answers })
