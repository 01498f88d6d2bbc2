import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatStage, refusalOf } from '../support/chat-stage.ts'

describe('without the operator token', () => {
  it('a caller cannot find out which operator routes exist', async (t) => {
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

describe('signing in to the operator’s console', () => {
  it('works only from its own page: other sites can neither sign a browser in nor out', async (t) => {
    const { weir } = await chatStage(t)
    const signIn = (headers: Record<string, string>, method = 'POST'): Promise<Response> =>
      fetch(`${weir.adminUrl}/console/api/session`, {
        method,
        headers: { 'content-type': 'application/json', ...headers },
        ...(method === 'POST' ? { body: JSON.stringify({ token: weir.operatorToken }) } : {}),
      })
    const own = { 'x-weir-console': '1' }
    for (const headers of [
      {},
      { ...own, 'sec-fetch-site': 'cross-site' },
      { ...own, 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'same-origin' },
    ]) {
      const response = await signIn(headers)
      assert.equal(response.headers.get('set-cookie'), null, JSON.stringify(headers))
      const { status, code } = await refusalOf(response)
      assert.deepEqual([status, code], [401, 'missing_api_key'])
    }
    for (const headers of [own, { ...own, 'sec-fetch-site': 'same-origin' }, { ...own, 'sec-fetch-site': 'none' }]) {
      const response = await signIn(headers)
      assert.equal(response.status, 200, JSON.stringify(headers))
      const cookie = (response.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
      const seen = async (): Promise<number> => (await signIn({ cookie }, 'GET')).status
      assert.equal(await seen(), 200)
      assert.equal((await signIn({ cookie, 'sec-fetch-site': 'cross-site' }, 'GET')).status, 401)
      await signIn({ cookie }, 'DELETE')
      assert.equal(await seen(), 200, 'a page of another site cannot sign it out')
      await signIn({ ...own, cookie }, 'DELETE')
      assert.equal(await seen(), 401)
    }
  })
})
