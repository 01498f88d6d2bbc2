import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { roomInThisMinute } from '../support/minute.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

let engine: ScriptedEngine
let weir: TestWeir

before(async () => {
  engine = await scriptedEngine()
  weir = await startWeir({ models: [modelEntry([engine.url])] })
})
after(async () => {
  await weir.stop()
  await engine.close()
})

async function newKey(workspace: string, limits: object = {}): Promise<string> {
  const response = await weir.admin('POST', '/admin/v1/keys', { workspace, ...limits })
  return ((await response.json()) as { key: string }).key
}

async function newWorkspace(name: string, limits: object = {}): Promise<string> {
  await weir.admin('POST', '/admin/v1/workspaces', { name })
  if (Object.keys(limits).length > 0) {
    assert.equal((await weir.admin('PATCH', `/admin/v1/workspaces/${name}`, limits)).status, 200)
  }
  return newKey(name)
}

interface Answer {
  readonly usage: { readonly total_tokens: number }
}

async function tokensOf(answer: Promise<Response>): Promise<number> {
  const response = await answer
  assert.equal(response.status, 200)
  return ((await response.json()) as Answer).usage.total_tokens
}

async function refusal(answer: Promise<Response>): Promise<{ message: string; headers: Headers }> {
  const response = await answer
  const { error } = (await response.json()) as { error: { code: string; message: string } }
  assert.deepEqual([response.status, error.code], [429, 'rate_limit_exceeded'])
  return { message: error.message, headers: response.headers }
}

interface Shown {
  readonly limit: number
  readonly used: number
  readonly remaining: number
}

async function ownKey(key: string) {
  const response = await weir.call('/key', { key })
  assert.equal(response.status, 200)
  const shown = (await response.json()) as {
    tokens_per_minute: Shown | null
    workspace_limits: { tokens_per_minute: Shown | null }
  }
  return [shown.tokens_per_minute, shown.workspace_limits.tokens_per_minute].map(
    (it) => it && [it.limit, it.used, it.remaining],
  )
}

describe('tokens per minute', () => {
  it('of a workspace refuse its next request once they are used, of whichever key, and of no other workspace', async () => {
    const key = await newWorkspace('first', { tokens_per_minute: 2 })
    const second = await newKey('first')
    const other = await newWorkspace('other')
    await roomInThisMinute(10_000)
    assert.ok((await tokensOf(weir.chat({}, { key }))) >= 2)
    const { message, headers } = await refusal(weir.chat({}, { key: second }))
    assert.match(
      message,
      /^Too many tokens in this minute: the workspace may use 2 tokens per minute\. Try again in \d+ s\.$/,
    )
    const seconds = Number(headers.get('retry-after'))
    assert.ok(seconds >= 1 && seconds <= 59)
    const named = ['limit-tokens', 'remaining-tokens', 'limit-requests', 'remaining-requests']
    assert.deepEqual(
      named.map((name) => headers.get(`x-ratelimit-${name}`)),
      ['2', '0', '600', headers.get('x-ratelimit-remaining')],
    )
    for (const unit of ['tokens', 'requests']) assert.match(headers.get(`x-ratelimit-reset-${unit}`) ?? '', /^\d+s$/)
    assert.deepEqual(await ownKey(second), [null, [2, 2, 0]])
    assert.equal((await weir.call('/models', { key })).status, 200, 'it takes no tokens')
    const body = JSON.stringify({ model: 'meta/test-8b', messages: [{ role: 'user', content: 'Hi' }] })
    assert.equal(
      (
        await weir.call('/messages/count_tokens', {
          key,
          method: 'POST',
          body,
          headers: { 'content-type': 'application/json' },
        })
      ).status,
      200,
    )
    for (const path of ['/messages', `${weir.service.url}/v1/messages`]) {
      assert.equal(
        (await weir.call(path, { key, method: 'POST', body, headers: { 'content-type': 'application/json' } })).status,
        429,
      )
    }
    const free = await weir.chat({}, { key: other })
    assert.deepEqual([free.status, free.headers.get('x-ratelimit-limit-tokens')], [200, null])
    assert.equal(free.headers.get('x-ratelimit-limit-requests'), null)
    assert.deepEqual(await ownKey(other), [null, null])
    await weir.admin('PATCH', '/admin/v1/workspaces/first', { tokens_per_minute: null })
    assert.equal((await weir.chat({}, { key })).status, 200)
  })

  it('of a key refuse only that key, within the limit of its workspace; a stream counts as well', async () => {
    const free = await newWorkspace('shared', { tokens_per_minute: 100_000 })
    const key = await newKey('shared', { tokens_per_minute: 1 })
    await roomInThisMinute(10_000)
    const streamed = await weir.chat({ stream: true }, { key })
    assert.deepEqual([streamed.status, streamed.headers.get('x-ratelimit-limit-tokens')], [200, '1'])
    assert.match(await streamed.text(), /\[DONE\]/)
    const { message, headers } = await refusal(weir.chat({}, { key }))
    assert.match(message, /: this API key may use 1 token per minute\. /)
    assert.equal(headers.get('x-ratelimit-limit-tokens'), '1')
    const [ofKey, before] = await ownKey(key)
    assert.deepEqual(ofKey, [1, 1, 0])
    const used = await tokensOf(weir.chat({}, { key: free }))
    assert.deepEqual(await ownKey(free), [null, [100_000, before![1]! + used, before![2]! - used]])
  })

  it('have no place for a request that was refused', async () => {
    const key = await newWorkspace('failing', { tokens_per_minute: 5 })
    await roomInThisMinute(10_000)
    assert.equal((await weir.chat({ model: 'none' }, { key })).status, 404)
    assert.deepEqual(await ownKey(key), [null, [5, 0, 5]])
  })
})
