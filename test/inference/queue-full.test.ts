import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ApiError } from '../../src/shared/errors.ts'
import type { Job } from '../../src/engines/job.ts'
import { admit } from '../../src/inference/pipeline/admit.ts'
import type { PipelineParts } from '../../src/inference/pipeline/parts.ts'
import type { Decision, LaneArrival } from '../../src/queue/admission.ts'
import type { Reply } from '../../src/server/reply.ts'
import type { Caller } from '../../src/workspaces/workspace.ts'

const limits = { maxRequestsPerWorkspace: 8 }
const job = { tier: 'default', model: { id: 'x/y' }, deployment: { lane: 'x/y', limits }, cost: 1 } as unknown as Job
const caller = { workspace: { id: 'acme' } } as Caller

/** The refusal of a request that the lane refuses in this way. */
async function refusalOf(kind: 'queue_full' | 'workspace_queue_full', random = 0): Promise<ApiError> {
  const admission = {
    enter(arrival: LaneArrival, decided: (decision: Decision, ticket: object) => void) {
      assert.deepEqual(arrival, { lane: 'x/y', workspace: 'acme', cost: 1, batch: undefined })
      decided({ kind }, {})
    },
  }
  const parts = { admission, random: () => random } as unknown as PipelineParts
  const refusal: unknown = await admit(parts, job, caller, { isGone: false } as Reply, 0).catch(
    (error: unknown) => error,
  )
  assert.ok(refusal instanceof ApiError)
  assert.equal(refusal.code, kind)
  return refusal
}

for (const kind of ['queue_full', 'workspace_queue_full'] as const) {
  describe(`a request that is refused with ${kind}`, () => {
    it('is sent away for 2 to 8 seconds, so that callers do not all return together', async () => {
      const refusals = await Promise.all([0, 0.15, 0.5, 0.999].map((random) => refusalOf(kind, random)))
      assert.deepEqual(
        refusals.map(({ retryAfter }) => retryAfter),
        [2, 3, 5, 8],
      )
    })
  })
}

it('a workspace that has its most requests at a model is given their number', async () => {
  assert.match((await refusalOf('workspace_queue_full')).message, /already has 8 requests waiting or running at x\/y/)
})
