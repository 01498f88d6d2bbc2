import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatStage } from '../support/chat-stage.ts'

/** A body of exactly so many bytes, which no route accepts. */
function bodyOf(bytes: number): string {
  const frame = JSON.stringify({ unknown: '' })
  return JSON.stringify({ unknown: 'x'.repeat(bytes - frame.length) })
}

describe('the body of a request', () => {
  it('to the consoles has 64 KiB at most, to the operator’s API 1 MiB', async (t) => {
    const { weir } = await chatStage(t)
    const authorization = `Bearer ${weir.operatorToken}`
    for (const [url, limit] of [
      [`${weir.service.url}/console/api/session`, 64 * 1024],
      [`${weir.adminUrl}/console/api/session`, 64 * 1024],
      [`${weir.adminUrl}/admin/v1/workspaces`, 1024 * 1024],
    ] as const) {
      const post = async (bytes: number): Promise<number> => {
        const headers = { 'content-type': 'application/json', 'x-weir-console': '1', authorization }
        const response = await fetch(url, { method: 'POST', headers, body: bodyOf(bytes) })
        await response.text()
        return response.status
      }
      assert.notEqual(await post(limit), 413, url)
      assert.equal(await post(limit + 1), 413, url)
    }
  })
})
