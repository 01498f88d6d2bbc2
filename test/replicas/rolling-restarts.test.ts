import assert from 'node:assert/strict'
import { it } from 'node:test'
import { rollingRestarts } from '../support/rolling-restarts.ts'

it('[Q6] a service is restarted under load: nothing fails, and waiting requests get 503', async (t) => {
  const { served, refused, failures } = await rollingRestarts(1)
  t.diagnostic(`${served} served, ${refused} refused with 503 and Retry-After`)
  assert.deepEqual(failures, [])
})
