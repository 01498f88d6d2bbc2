import { messageTokens, sumOf, textTokens } from '../../src/shared/tokens/token-estimate.ts'
import { eventually } from './waiting.ts'
import type { TestWeir } from './weir.ts'

/** The load of a lane without batch places. */
export const noBatchLoad = { inFlightRequests: 0, committedTokens: 0, queueDepth: 0 }

/** A model's queue as GET /queue/status shows it. */
export interface LaneView {
  readonly object: string
  readonly model: string
  readonly in_flight_requests: number
  readonly committed_tokens: number
  readonly available_budget: number
  readonly queue_depth: number
  readonly limits: Readonly<Record<string, number>>
}

export async function laneOf(weir: TestWeir, model = 'meta/test-8b'): Promise<LaneView> {
  const { data } = (await (await weir.call('/queue/status')).json()) as { data: LaneView[] }
  const lane = data.find((it) => it.model === model)
  if (!lane) throw new Error(`${model} has no lane`)
  return lane
}

/** Resolves when so many are in flight and so many wait. */
export async function laneHolds(weir: TestWeir, inFlight: number, queued: number): Promise<void> {
  await eventually(`${inFlight} in flight and ${queued} queued`, async () => {
    const lane = await laneOf(weir)
    return lane.in_flight_requests === inFlight && lane.queue_depth === queued
  })
}

/** What admission charges for one message to a model that names no tokenizer. */
export function chargeOf(content: string, maxTokens: number): number {
  return sumOf([textTokens(content, undefined), messageTokens(1)]).charged + maxTokens
}
