import type { LaneLimits } from '../queue/lane.ts'
import type { LaneSettingsStore, OperatorLimits } from './lane-settings-store.ts'
import { query, writeOne, type Database, type Row } from '../store/database.ts'

export function laneSettingsQueries(database: Database): LaneSettingsStore {
  return {
    async laneSettings() {
      const [limits = [], drained = []] = await database.transact({
        access: 'read',
        statements: [query('SELECT * FROM lane_limits'), query('SELECT url FROM drained_addresses')],
      })
      return { limits: limits.map(toLimits), drained: drained.map(({ url }) => String(url)) }
    },
    setLaneLimits: ({ lane, limits, limitsInFile }) =>
      writeOne(
        database,
        `INSERT INTO lane_limits
           (lane, token_budget, max_concurrent_requests, max_queue_depth, max_wait_ms, max_requests_per_workspace,
            limits_in_file)
         VALUES (?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (lane) DO UPDATE SET token_budget = excluded.token_budget,
           max_concurrent_requests = excluded.max_concurrent_requests, max_queue_depth = excluded.max_queue_depth,
           max_wait_ms = excluded.max_wait_ms,
           max_requests_per_workspace = excluded.max_requests_per_workspace, limits_in_file = excluded.limits_in_file`,
        lane,
        limits.tokenBudget,
        limits.maxConcurrentRequests,
        limits.maxQueueDepth,
        limits.maxWaitMs,
        limits.maxRequestsPerWorkspace ?? null,
        JSON.stringify(limitsInFile),
      ),
    clearLaneLimits: (lane) => writeOne(database, 'DELETE FROM lane_limits WHERE lane = ?', lane),
    setDrained: (url, isDrained) =>
      isDrained
        ? writeOne(database, 'INSERT INTO drained_addresses (url) VALUES (?) ON CONFLICT (url) DO NOTHING', url)
        : writeOne(database, 'DELETE FROM drained_addresses WHERE url = ?', url),
  }
}

function toLimits(row: Row): OperatorLimits {
  return {
    lane: String(row['lane']),
    limits: {
      tokenBudget: Number(row['token_budget']),
      maxConcurrentRequests: Number(row['max_concurrent_requests']),
      maxQueueDepth: Number(row['max_queue_depth']),
      maxWaitMs: Number(row['max_wait_ms']),
      maxRequestsPerWorkspace:
        row['max_requests_per_workspace'] === null ? undefined : Number(row['max_requests_per_workspace']),
    },
    limitsInFile: JSON.parse(String(row['limits_in_file'])) as LaneLimits,
  }
}
