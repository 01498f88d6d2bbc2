import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatStage, refusalOf } from '../support/chat-stage.ts'

describe('without the operator token', () => {
  it('nobody learns which operator routes exist', async (t) => {
    const { weir } = await chatStage(t)
    for (const [method, path] of [
      ['GET', '/admin/v1/workspaces'],
      ['DELETE', '/admin/v1/workspaces'],
      ['GET', '/admin/v1/nothing'],
      ['GET', '/nothing'],
      ['POST', '/healthz'],
    ] as const) {
      const { status, code } = await refusalOf(await fetch(`${weir.adminUrl}${path}`, { method }))
      assert.deepEqual([status, code], [401, 'missing_api_key'], `${method} ${path}`)
    }
  })
})
