import { periodOf } from '../../shared/period.ts'
import { systemClock } from '../../shared/system-clock.ts'
import { ApiError } from '../../shared/errors.ts'
import type { Model } from '../../catalog/model.ts'
import type { Arrival } from '../queue-simulation.ts'
import type { Store } from '../../store/store.ts'
import { UsageError, withStore, type Flags } from '../../cli/command.ts'

/** Which requests to replay from the ledger. */
export interface Replay {
  /** A slug or an alias. */
  readonly model: string
  /** The workspace whose reserved capacity to replay; undefined means the shared capacity. */
  readonly workspace: string | undefined
  readonly from: string
  readonly to: string
}

/** The requests that arrived in a period, in any order. Times are relative to its start. */
export interface TimedArrivals {
  readonly arrivals: readonly Arrival[]
  readonly durationMs: number
}

const rowsPerPage = 20_000
const requestsMax = 2_000_000

/** Reads the requests to one lane of a model. Requests that were never admitted have no row in the ledger, so they are missing. */
export async function recordedLoad(flags: Flags, replay: Replay): Promise<TimedArrivals> {
  return withStore(flags, { changes: false }, async ({ config, store }) => {
    const lane = laneOf(config.catalog.read(), replay)
    const { from, to: end } = periodOf(replay)
    // Cut off at the present, so that the rest of today does not count as time without requests.
    const to = Math.min(end, systemClock.now())
    if (from >= to) throw new UsageError('--from must be before --to, and in the past')
    const arrivals = await readArrivals(store, lane, from, to)
    if (arrivals.length === 0) throw new UsageError(`the ledger has no requests to ${lane} in this period`)
    return { arrivals, durationMs: to - from }
  })
}

function laneOf(models: readonly Model[], { model: name, workspace }: Replay): string {
  const model = models.find((it) => it.id === name || it.aliases.includes(name))
  if (!model) throw new ApiError('model_not_found', `The model '${name}' is not in the catalog.`)
  const deployment =
    workspace === undefined ? model.serverless : model.dedicated.find((it) => it.workspace === workspace)
  if (deployment) return deployment.lane
  throw new UsageError(
    workspace === undefined
      ? `${model.id} has only reserved capacity; choose whose with --workspace`
      : `${model.id} has no capacity reserved for ${workspace}`,
  )
}

async function readArrivals(store: Store, lane: string, from: number, to: number): Promise<readonly Arrival[]> {
  const arrivals: Arrival[] = []
  for (;;) {
    const page = await store.arrivals({ lane, from, to, limit: rowsPerPage, offset: arrivals.length })
    for (const { arrivedAt, inputTokens, maxTokens, outputTokens } of page) {
      arrivals.push({ atMs: arrivedAt - from, inputTokens, maxTokens, outputTokens })
    }
    if (page.length < rowsPerPage) return arrivals
    if (arrivals.length > requestsMax)
      throw new UsageError(`choose a shorter period: this one has more than ${requestsMax} requests`)
  }
}
