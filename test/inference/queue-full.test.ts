import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ApiError } from '../../src/shared/errors.ts'
import type { Job } from '../../src/engines/job.ts'
import { admit } from '../../src/inference/pipeline/admit.ts'
import type { PipelineParts } from '../../src/inference/pipeline/parts.ts'
import type { Decision } from '../../src/queue/admission.ts'
import type { Reply } from '../../src/server/reply.ts'

const job = { model: { id: 'x/y' }, deployment: { lane: 'x/y', limits: {} }, cost: 1 } as unknown as Job

/** The Retry-After of a request that finds the queue full. */
async function retryAfter(random: number): Promise<number | null> {
  const admission = {
    enter(_lane: string, _cost: number, decided: (decision: Decision, ticket: object) => void) {
      decided({ kind: 'queue_full' }, {})
    },
  }
  const parts = { admission, random: () => random } as unknown as PipelineParts
  const refusal: unknown = await admit(parts, job, { isGone: false } as Reply).catch((error: unknown) => error)
  assert.ok(refusal instanceof ApiError && refusal.code === 'queue_full')
  return refusal.retryAfter
}

describe('a full queue', () => {
  it('sends callers away for 2 to 8 seconds, so that they do not all return together', async () => {
    assert.deepEqual(await Promise.all([0, 0.15, 0.5, 0.999].map(retryAfter)), [2, 3, 5, 8])
  })
})
