import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatStage } from '../support/chat-stage.ts'
import { roomInThisMinute } from '../support/minute.ts'

describe('the rate limit of a workspace', () => {
  it('is shared by all of its keys', async (t) => {
    const { weir } = await chatStage(t)
    const created = await weir.admin('POST', '/admin/v1/keys', { workspace: 'default' })
    const { key } = (await created.json()) as { key: string }
    await weir.admin('PATCH', '/admin/v1/workspaces/default', { requests_per_minute: 2 })
    await roomInThisMinute(10_000)
    const statuses = []
    for (const next of [weir.key, key, weir.key, key]) {
      statuses.push((await weir.call('/models', { key: next })).status)
    }
    assert.deepEqual(statuses, [200, 200, 429, 429])
  })
})
