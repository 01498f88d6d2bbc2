export default [
  {
    file: 'src/cluster/redis/link.ts',
    before: 'autoResendUnfulfilledCommands: false,',
    after: '',
    why: 'maxRetriesPerRequest: 0 gives up every command with its connection.',
  },
  {
    file: 'src/cluster/redis/link.ts',
    before: 'autoResendUnfulfilledCommands: false,',
    after: 'autoResendUnfulfilledCommands: true,',
    why: 'maxRetriesPerRequest: 0 gives up every command with its connection.',
  },
  {
    file: 'src/cluster/redis/link.ts',
    before: 'const commands = new Redis(url, { ...settings, enableAutoPipelining: true })',
    after: 'const commands = new Redis(url, { ...settings, enableAutoPipelining: false })',
    why: 'Only saves system calls.',
  },
  {
    file: 'src/cluster/redis/link.ts',
    within: 'lose',
    before: 'answers.forget()',
    after: ';',
    why: 'What was asked on a connection is rejected when it ends, and no longer expected then.',
  },
  {
    file: 'src/workspaces/rate-limits/redis.ts',
    before: 'let aheadMs = 0',
    after: 'let aheadMs = 1',
    why: 'A clock that is a millisecond ahead of that of Redis, until Redis has answered once.',
  },
  {
    file: 'src/workspaces/rate-limits/rate-limit.ts',
    within: 'windowCounts',
    before: 'let current = 0',
    after: 'let current = 1',
    why: 'The first window begins with no counts in any case.',
  },
  {
    file: 'src/workspaces/spend-limits/memory.ts',
    before: 'const previous = periodAt(period.from - 1)',
    after: 'const previous = periodAt(period.from - 2)',
    why: 'Both moments are in the period before.',
  },
  {
    file: 'src/cluster/workers/shared-port.ts',
    before:
      'const server = createServer({ pauseOnConnect: true, noDelay: true, allowHalfOpen: true, ...keepAliveOptions })',
    after: 'const server = createServer({ pauseOnConnect: true, noDelay: true, ...keepAliveOptions })',
    why: 'Nothing is read here, so the end of what a caller sends is not seen here either.',
  },
  {
    file: 'src/queue/redis/lane-scripts.ts',
    within: 'join',
    before: 'return Number(quiet) / 1000',
    after: 'return Number(quiet) * 1000',
    why: 'It only matters whether it is more than nothing.',
  },
  {
    file: 'src/queue/redis/lane.lua',
    before: 'return now < figures.quiet_until',
    after: 'return now <= figures.quiet_until',
    why: 'One microsecond.',
  },
  {
    file: 'src/cluster/redis/link.ts',
    before: 'if (attempt !== incarnation || isClosed) return',
    after: 'if (isClosed) return',
    why: 'What an earlier connection did not answer is rejected when it ends.',
  },
  {
    file: 'src/config/config-file.ts',
    before: 'max_request_memory_bytes: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),',
    after: 'max_request_memory_bytes: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),',
    why: 'The memory for the largest body is more.',
  },
  {
    file: 'src/cluster/workers/supervise.ts',
    before: '() => void lives.push(...Array.from({ length: count - 1 }, (_, index) => keep(index + 2))),',
    after: '() => void lives.unshift(...Array.from({ length: count - 1 }, (_, index) => keep(index + 2))),',
    why: 'All of them are waited for, in any order.',
  },
]
