-- The batch places of one lane across all replicas, as queue/batch-places.ts has them for one process. Every script has this
-- file behind batch-queue.lua. design.md explains the rules.
--
-- KEYS:
--   7 sorted set: batch places in flight that can be preempted, by their start
--   8 sorted set: batch places that were preempted and have not left, by their start
-- Replicas of earlier versions know neither these keys nor those of batch-queue.lua. The figures of batch places are a field
-- of the lane. While the field is missing, the keys have no meaning.

-- `stored` are the figures of the lane's batch places, if it has any.
local function open_batch_places(stored)
  local BATCH_FIGURES = {
    'in_flight_requests', 'in_flight_tokens', 'preemptible_requests', 'preemptible_tokens', 'leaving_requests',
    'leaving_tokens', 'covered_requests', 'covered_tokens', 'covered_until', 'queued', 'last_start', 'last_turn',
  }
  local BATCH_LIMITS = {
    'reserved_requests', 'reserved_tokens', 'share_requests', 'share_tokens', 'preempt', 'depth',
  }
  local PREEMPTIBLE, LEAVING = KEYS[7], KEYS[8]
  local it = unpacked(BATCH_FIGURES, stored or '0 0 0 0 0 0 0 0 0 0 0 0')
  local rules = unpacked(BATCH_LIMITS, batch_limits)
  local queue = open_batch_queue(it)
  local places = {}
  if not stored then
    redis.call('DEL', PREEMPTIBLE, LEAVING)
    queue.clear()
  end

  local function add(sum, place)
    it[sum .. '_requests'] = it[sum .. '_requests'] + 1
    it[sum .. '_tokens'] = it[sum .. '_tokens'] + place.cost
  end

  local function subtract(sum, place)
    it[sum .. '_requests'] = it[sum .. '_requests'] - 1
    it[sum .. '_tokens'] = it[sum .. '_tokens'] - place.cost
  end

  local function refuse_batch(place, kind)
    queue.remove(place)
    send(place, kind)
  end

  function places.started(place, start)
    add('in_flight', place)
    add('preemptible', place)
    redis.call('ZADD', PREEMPTIBLE, text(start), place.id)
  end

  -- Places that start in the same microsecond are in order, too.
  local function start_now(place)
    it.last_start = math.max(now, it.last_start + 1)
    places.started(place, it.last_start)
  end

  function places.ended(place)
    subtract('in_flight', place)
    if redis.call('ZREM', PREEMPTIBLE, place.id) == 1 then subtract('preemptible', place) end
    if redis.call('ZREM', LEAVING, place.id) == 1 then subtract('leaving', place) end
  end

  -- Covered places are the front of the online queue, up to a number.
  function places.uncover(place)
    if place.number <= it.covered_until then subtract('covered', place) end
  end

  local function uncover_all()
    it.covered_requests, it.covered_tokens, it.covered_until = 0, 0, 0
  end

  -- Returns whether the place was preempted. It does not give way, so others have to when the lane settles.
  function places.keep(place)
    if redis.call('ZREM', PREEMPTIBLE, place.id) == 1 then subtract('preemptible', place) end
    local was_preempted = redis.call('ZREM', LEAVING, place.id) == 1
    if was_preempted then
      subtract('leaving', place)
      uncover_all()
    end
    return was_preempted
  end

  -- Its charge stays until it leaves.
  function places.preempt(place)
    redis.call('ZADD', LEAVING, redis.call('ZSCORE', PREEMPTIBLE, place.id), place.id)
    redis.call('ZREM', PREEMPTIBLE, place.id)
    subtract('preemptible', place)
    add('leaving', place)
  end

  -- While batch places may use no tokens at all they are paused, and wait.
  local function is_too_large(cost)
    local most = math.min(rules.share_tokens, limits.tokens - rules.reserved_tokens)
    return cost > limits.tokens or (most > 0 and cost > most)
  end

  -- Whether no online place waits, the reserve stays free, and batch places have at most their share. Online places that may
  -- not wait cannot wait for batch places either.
  local function fits_as_batch(cost)
    return limits.wait > 0 and redis.call('ZCARD', QUEUE) == 0 and
      figures.requests < limits.requests - rules.reserved_requests and
      figures.tokens + cost <= limits.tokens - rules.reserved_tokens and
      it.in_flight_requests < rules.share_requests and
      it.in_flight_tokens + cost <= rules.share_tokens
  end

  -- Whether an online place fits behind the covered ones once the preempted places have left, or with `may_preempt` all that
  -- can be preempted.
  local function fits_behind_covered(cost, may_preempt)
    local requests = limits.requests - figures.requests + it.leaving_requests - it.covered_requests
    local tokens = limits.tokens - figures.tokens + it.leaving_tokens - it.covered_tokens
    if may_preempt and rules.preempt == 1 then
      requests = requests + it.preemptible_requests
      tokens = tokens + it.preemptible_tokens
    end
    return requests > 0 and tokens >= cost
  end

  -- For places that a replica of an earlier version has removed.
  function places.count_again()
    for _, set in ipairs({ PREEMPTIBLE, LEAVING }) do
      for _, id in ipairs(redis.call('ZRANGE', set, 0, -1)) do
        if redis.call('HEXISTS', PLACES, id) == 0 then redis.call('ZREM', set, id) end
      end
    end
    for _, sum in ipairs({ 'in_flight', 'preemptible', 'leaving' }) do
      it[sum .. '_requests'], it[sum .. '_tokens'] = 0, 0
    end
    for _, id in ipairs(redis.call('HKEYS', PLACES)) do
      if is_batch(id) then
        local place = place_of(id)
        add('in_flight', place)
        if redis.call('ZSCORE', PREEMPTIBLE, id) then add('preemptible', place) end
        if redis.call('ZSCORE', LEAVING, id) then add('leaving', place) end
      end
    end
    uncover_all()
  end

  -- Returns false if the figures were wrong.
  local function preempt_youngest()
    local id = redis.call('ZRANGE', PREEMPTIBLE, -1, -1)[1]
    local place = id and place_of(id)
    if not place then
      places.count_again()
      return false
    end
    places.preempt(place)
    send(place, 'preempted')
    return true
  end

  local function first_uncovered()
    local id = redis.call('ZRANGEBYSCORE', QUEUE, '(' .. text(it.covered_until), '+inf', 'LIMIT', 0, 1)[1]
    return id and place_of(id)
  end

  -- Covers online places that wait, from the head on, and preempts as many batch places for each as it needs to fit, the
  -- youngest first. None if even all of them would not be enough.
  function places.make_way()
    if it.in_flight_requests == 0 or is_quiet() then return end
    local place = first_uncovered()
    -- A replica of an earlier version may have removed covered places.
    if not place and it.covered_requests > 0 and redis.call('ZCARD', QUEUE) == 0 then uncover_all() end
    while place and fits_behind_covered(place.cost, true) do
      while not fits_behind_covered(place.cost, false) do
        if not preempt_youngest() then return end
      end
      add('covered', place)
      it.covered_until = place.number
      place = first_uncovered()
    end
  end

  -- Admits the place whose turn it is. One that does not fit holds back all others.
  function places.pump()
    if is_quiet() then return end
    local place = queue.head()
    while place do
      if is_too_large(place.cost) then
        refuse_batch(place, 'too_large')
      elseif not fits_as_batch(place.cost) then
        return
      elseif not fits_beside_promises(place.owner, place.cost) then
        return recall()
      else
        queue.take(place)
        grant(place)
        start_now(place)
      end
      place = queue.head()
    end
  end

  function places.expire()
    local place = queue.due()
    while place do
      refuse_batch(place, 'overloaded')
      place = queue.due()
    end
  end

  function places.arrive(id, cost, max_wait)
    local known = place_of(id) or queue.find(id)
    if known and known.state == 'queued' then return { 'queued', text(known.number) } end
    if known then
      acknowledge(known)
      return { 'admitted' }
    end
    if is_too_large(cost) then return { 'too_large' } end
    local place = { id = id, owner = replica, cost = cost, number = math.max(now, figures.last_number + 1) }
    local has_room = it.queued == 0 and not is_quiet() and fits_as_batch(cost)
    if has_room and fits_beside_promises(replica, cost) then
      charge(place, 'in_flight')
      start_now(place)
      return { 'admitted' }
    end
    if it.queued >= rules.depth then return { 'queue_full' } end
    if max_wait == 0 then return { 'overloaded' } end
    figures.last_number = place.number
    queue.add(place, max_wait)
    if has_room then recall() end
    return { 'queued', text(place.number) }
  end

  function places.cancel(id)
    local place = queue.find(id)
    if place and place.owner == replica then queue.remove(place) end
  end

  -- Whether an online place may wait although the queue is as long as its depth: places that wait only for batch places to
  -- give way do not count.
  function places.has_queue_room(depth, cost)
    if depth - it.covered_requests < limits.depth then return true end
    return it.in_flight_requests > 0 and it.covered_requests == depth and fits_behind_covered(cost, true)
  end

  -- Whether only promises hold back the place whose turn it is.
  function places.wait_for_promises()
    local place = queue.head()
    return place and fits_as_batch(place.cost)
  end

  function places.set_limits()
    rules = unpacked(BATCH_LIMITS, batch_limits)
    uncover_all()
  end

  function places.preempted()
    return redis.call('ZRANGE', LEAVING, 0, -1)
  end

  function places.load()
    return it.in_flight_requests, it.in_flight_tokens, it.queued
  end

  function places.save()
    if it.in_flight_requests == 0 and it.queued == 0 then redis.call('HDEL', LANE, 'batch')
    else redis.call('HSET', LANE, 'batch', packed(BATCH_FIGURES, it)) end
  end

  places.enqueue = queue.add
  places.remove_waiting = queue.remove_all_of
  return places
end

if read[6] then batch = open_batch_places(read[6]) end
