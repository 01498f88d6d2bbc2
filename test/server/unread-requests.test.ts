import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { listen, urlOf } from '../../src/server/server.ts'
import type { RateView } from '../../src/workspaces/rate-limits/rate-limit.ts'
import { rawClient } from '../support/raw-client.ts'
import { answersIn } from '../support/wire-stage.ts'

/** A listener that nothing readable arrives at. Says what a caller gets for bytes that are no request. */
async function answerToNonsense(t: TestContext, rateOf: (address: string) => Promise<RateView | undefined>) {
  const application = {
    answer: () => assert.fail('there is no request'),
    rateOf,
    headers: ({ rate }: { readonly rate: RateView | undefined }) => ({ 'X-Rate': rate ? 'known' : 'unknown' }),
    over() {},
  }
  const listener = await listen(application, '127.0.0.1', 0)
  const client = await rawClient(urlOf(listener))
  t.after(() => {
    client.leave()
    return listener.close(0)
  })
  client.send('nonsense\r\n\r\n')
  await client.sees('"invalid_value"')
  const [answer] = answersIn(client.received)
  return answer?.head.split('\r\n') ?? assert.fail(client.received)
}

describe('bytes that are no request', () => {
  it('are answered with the rate limit of their address', async (t) => {
    const asked: string[] = []
    const head = await answerToNonsense(t, async (address) => {
      asked.push(address)
      return {} as RateView
    })
    assert.deepEqual(asked, ['127.0.0.1'])
    assert.ok(head.includes('X-Rate: known') && head.includes('Connection: close'), head.join())
  })

  it('are answered although the rate limit cannot be read', async (t) => {
    const head = await answerToNonsense(t, () => Promise.reject(new Error('Redis is away')))
    assert.equal(head[0], 'HTTP/1.1 400 invalid_value')
    assert.ok(head.includes('X-Rate: unknown'))
  })
})
