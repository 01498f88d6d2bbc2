-- The batch places of one lane that wait, as queue/batch-queue.ts has them for one process. Every script has this file behind
-- lane.lua.
--
-- KEYS:
--    9 hash:       batch places that wait: 'queued REPLICA COST NUMBER'
--   10 sorted set: the same as 'WORKSPACE\nNUMBER ID', in alphabetical order: all scores are 0
--   11 sorted set: the workspaces of these places, by whose turn it is
--   12 sorted set: those of these places that have a maximum wait, by its end

-- `figures_of_batch` has the number of places that wait and the last turn.
local function open_batch_queue(figures_of_batch)
  local WAITING, ORDER, TURNS, ENDS = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
  local it = figures_of_batch
  local queue = {}

  local function workspace_of_batch(id)
    return string.match(id, '^batch %S+ (.*)$')
  end

  local function member_of(place)
    return workspace_of_batch(place.id) .. '\n' .. string.format('%016d', place.number) .. ' ' .. place.id
  end

  local function next_turn()
    it.last_turn = it.last_turn + 1
    return it.last_turn
  end

  -- The place of the workspace that has waited longest. Character 11 is the one after '\n'.
  local function first_of_workspace(workspace)
    local member = redis.call('ZRANGEBYLEX', ORDER, '[' .. workspace .. '\n', '(' .. workspace .. '\11', 'LIMIT', 0, 1)[1]
    return member and string.match(member, '\n%d+ (.*)$')
  end

  function queue.find(id)
    return place_of(id, WAITING)
  end

  -- The place whose turn it is.
  function queue.head()
    local workspace = it.queued > 0 and redis.call('ZRANGE', TURNS, 0, 0)[1]
    return workspace and queue.find(first_of_workspace(workspace))
  end

  function queue.due()
    local id = it.queued > 0 and first_of(ENDS)
    return id and queue.find(id)
  end

  -- A workspace joins at the end of the round.
  function queue.add(place, max_wait)
    place.state = 'queued'
    it.queued = it.queued + 1
    store(place, WAITING)
    redis.call('ZADD', ORDER, 0, member_of(place))
    redis.call('ZADD', TURNS, 'NX', next_turn(), workspace_of_batch(place.id))
    if max_wait >= 0 then redis.call('ZADD', ENDS, text(now + max_wait), place.id) end
  end

  function queue.remove(place)
    it.queued = it.queued - 1
    redis.call('HDEL', WAITING, place.id)
    redis.call('ZREM', ORDER, member_of(place))
    redis.call('ZREM', ENDS, place.id)
    local workspace = workspace_of_batch(place.id)
    if not first_of_workspace(workspace) then redis.call('ZREM', TURNS, workspace) end
  end

  -- Removes the head, and passes the turn on.
  function queue.take(place)
    queue.remove(place)
    redis.call('ZADD', TURNS, 'XX', next_turn(), workspace_of_batch(place.id))
  end

  function queue.remove_all_of(owner)
    for _, id in ipairs(redis.call('HKEYS', WAITING)) do
      local place = queue.find(id)
      if place.owner == owner then queue.remove(place) end
    end
  end

  function queue.clear()
    redis.call('DEL', WAITING, ORDER, TURNS, ENDS)
  end

  return queue
end
