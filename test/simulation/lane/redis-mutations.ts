import type { Invariant } from './witness.ts'

/** Mutations of the scripts in src/queue/redis: the same as those of lane.ts, each with the invariant that it breaks. */
export const redisMutations: readonly {
  readonly name: string
  readonly script: string
  readonly find: string
  readonly replace: string
  readonly breaks: Invariant
}[] = [
  {
    name: 'barging: an arrival that fits is admitted past the queue',
    script: 'enter',
    find: 'local has_room = depth == 0 and',
    replace: 'local has_room =',
    breaks: 'I3',
  },
  {
    name: 'skipping: the one behind a head that does not fit is admitted first',
    script: 'lane',
    find: 'local place = place_of(head)\n',
    replace:
      "local place = place_of(head)\n    if not fits(place.cost) then place = place_of(redis.call('ZRANGE', QUEUE, 1, 1)[1] or head) end\n",
    breaks: 'I3',
  },
  {
    name: 'last in, first out',
    script: 'lane',
    find: 'local place = place_of(head)\n',
    replace: "local place = place_of(redis.call('ZRANGE', QUEUE, -1, -1)[1])\n",
    breaks: 'I3',
  },
  {
    name: 'concurrency is off by one',
    script: 'lane',
    find: 'figures.requests < limits.requests and',
    replace: 'figures.requests <= limits.requests and',
    breaks: 'I1',
  },
  {
    name: 'the budget is compared without the cost of the arrival',
    script: 'lane',
    find: 'figures.tokens + cost <= limits.tokens',
    replace: 'figures.tokens < limits.tokens',
    breaks: 'I2',
  },
  {
    name: 'the last token of the budget is never used',
    script: 'lane',
    find: 'figures.tokens + cost <= limits.tokens',
    replace: 'figures.tokens + cost < limits.tokens',
    breaks: 'I7',
  },
  {
    name: 'lost charge',
    script: 'lane',
    find: 'figures.tokens = figures.tokens + place.cost',
    replace: 'figures.tokens = figures.tokens',
    breaks: 'I2',
  },
  {
    name: 'a release returns one token less than was charged',
    script: 'lane',
    find: 'figures.tokens = figures.tokens - place.cost',
    replace: 'figures.tokens = figures.tokens - math.max(0, place.cost - 1)',
    breaks: 'I2',
  },
  {
    name: 'a release keeps the slot',
    script: 'lane',
    find: 'figures.requests = figures.requests - 1',
    replace: 'figures.requests = figures.requests',
    breaks: 'I2',
  },
  {
    name: 'double release: a place that was released can be released again',
    script: 'lane',
    find: "redis.call('ZREM', GRANTS, place.id)\n  redis.call('HDEL', PLACES, place.id)\nend\n\nlocal function enqueue",
    replace: "redis.call('ZREM', GRANTS, place.id)\nend\n\nlocal function enqueue",
    breaks: 'I2',
  },
  {
    name: 'missed pump after a release or a cancel',
    script: 'leave',
    find: 'settle()\n',
    replace: '',
    breaks: 'I7',
  },
  {
    name: 'missed pump after a change of limits',
    script: 'limits',
    find: 'settle()\n',
    replace: '',
    breaks: 'I7',
  },
  {
    name: 'missed pump after an expiry',
    script: 'lane',
    find: '  pump()\nend\n',
    replace: "  if #redis.call('ZRANGE', DUE, 0, 0) == 0 then pump() end\nend\n",
    breaks: 'I7',
  },
  {
    name: 'the queue grows one beyond its depth',
    script: 'enter',
    find: 'depth >= limits.depth',
    replace: 'depth > limits.depth',
    breaks: 'I4',
  },
  {
    name: 'queue_full one too early',
    script: 'enter',
    find: 'depth >= limits.depth',
    replace: 'depth + 1 >= limits.depth',
    breaks: 'I4',
  },
  {
    name: 'late expiry: the deadline itself is not yet late',
    script: 'lane',
    find: "'-inf', text(now), 'LIMIT'",
    replace: "'-inf', '(' .. text(now), 'LIMIT'",
    breaks: 'I5',
  },
  {
    name: 'early expiry',
    script: 'lane',
    find: "'-inf', text(now), 'LIMIT'",
    replace: "'-inf', text(now + 1000), 'LIMIT'",
    breaks: 'I5',
  },
  {
    name: 'capacity that is freed too late still admits',
    script: 'lane',
    find: 'local function settle()\n',
    replace: 'local function settle()\n  pump()\n',
    breaks: 'I5',
  },
  {
    name: 'a changed maximum wait applies to callers that waited before',
    script: 'limits',
    find: 'settle()\n',
    replace:
      "for _, id in ipairs(redis.call('ZRANGE', QUEUE, 0, -1)) do redis.call('ZADD', DUE, text(now + limits.wait), 'wait ' .. id) end\nsettle()\n",
    breaks: 'I5',
  },
  {
    name: 'a request waits although waiting is not allowed',
    script: 'enter',
    find: "if limits.wait == 0 then return { 'overloaded' } end\n",
    replace: '',
    breaks: 'I8',
  },
  {
    name: 'a cancelled caller stays in the queue',
    script: 'leave',
    find: "if place.state == 'queued' then dequeue(place) else release(place) end",
    replace: "if place.state ~= 'queued' then release(place) end",
    breaks: 'I6',
  },
  {
    name: 'two outcomes for one request',
    script: 'lane',
    find: 'local function refuse(place, kind)\n',
    replace: "local function refuse(place, kind)\n  notify(place.owner, LANE .. '\\n' .. place.id .. '\\n' .. kind)\n",
    breaks: 'I8',
  },
  {
    name: 'too_large is missed on arrival',
    script: 'enter',
    find: "if cost > limits.tokens then return { 'too_large' } end\n",
    replace: '',
    breaks: 'I10',
  },
  {
    name: 'a head larger than a lowered budget blocks the lane',
    script: 'lane',
    find: 'if place.cost > limits.tokens then',
    replace: 'if false then',
    breaks: 'I7',
  },
  {
    name: 'a lowered depth evicts the tail',
    script: 'limits',
    find: 'settle()\n',
    replace:
      "for _, id in ipairs(redis.call('ZRANGE', QUEUE, limits.depth, -1)) do refuse(place_of(id), 'queue_full') end\nsettle()\n",
    breaks: 'I12',
  },
  {
    name: 'a lowered concurrency forgets requests in flight',
    script: 'limits',
    find: 'settle()\n',
    replace: 'figures.requests = math.min(figures.requests, limits.requests)\nsettle()\n',
    breaks: 'I2',
  },
  {
    name: 'the wait is not measured from the arrival',
    script: 'lane',
    find: 'text(now - place.number)',
    replace: 'text(now)',
    breaks: 'I13',
  },
]
