import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import type { LedgerRow } from '../../src/ledger/rows.ts'
import { rawChat, rawClient } from '../support/raw-client.ts'
import { sharedStage } from '../support/shared-stage.ts'
import { eventually } from '../support/waiting.ts'
import type { TestWeir } from '../support/weir.ts'

/** A row says which status and which error its caller got. */

const SECRET = 'the private words of a prompt'

async function onlyRow(weir: TestWeir): Promise<LedgerRow> {
  let rows: readonly LedgerRow[] = []
  await eventually('a row is settled', async () => (rows = await weir.ledger()).length > 0)
  assert.equal(rows.length, 1)
  return rows[0]!
}

const failureOf = ({ outcome, httpStatus, errorCode }: LedgerRow): unknown[] => [outcome, httpStatus, errorCode]

const refusal = (status: number, message: string): { refuse: { status: number; body: unknown } } => ({
  refuse: { status, body: { error: { message, type: 'invalid_request_error' } } },
})

describe('[X4] the row of a request that failed', () => {
  const garbled = (_call: unknown, response: ServerResponse): void => void response.writeHead(200).end('<html>')
  const tooLong = `This model's maximum context length is 10 tokens, but "${SECRET}" has more.`
  const cases = [
    ['was too long for the engine', refusal(400, tooLong), 400, 'context_length_exceeded'],
    ['was invalid for the engine', refusal(400, `"${SECRET}" is not allowed.`), 400, 'invalid_value'],
    ['was too large for the engine', refusal(413, 'Too large.'), 413, 'request_too_large'],
    ['met an overloaded engine', refusal(429, 'Slow down.'), 503, 'model_overloaded'],
    ['met a broken engine', refusal(500, 'CUDA error'), 502, 'upstream_error'],
    ['met an engine that timed out', refusal(504, 'Late.'), 504, 'upstream_timeout'],
    ['got no usable answer', { handle: garbled }, 502, 'upstream_error'],
  ] as const
  for (const [what, script, status, code] of cases) {
    for (const stream of [false, true]) {
      it(`has the reason, if it ${what}${stream ? ', streaming' : ''}`, async (t) => {
        const { weir } = await sharedStage(t, { script })
        const response = await weir.chat({ stream })
        assert.equal(response.status, status)
        await response.text()
        const row = await onlyRow(weir)
        assert.deepEqual(failureOf(row), ['engine_failed', status, code])
        assert.doesNotMatch(JSON.stringify({ ...row, amount: 0 }), new RegExp(SECRET))
      })
    }
  }

  for (const tokens of [0, 2]) {
    it(`shows that a stream broke off after ${tokens} tokens, and that it had started with 200`, async (t) => {
      const { weir } = await sharedStage(t, { script: { breakAfter: { tokens, how: 'reset' } } })
      const response = await weir.chat({ stream: true })
      assert.equal(response.status, 200)
      await response.text()
      const outcome = tokens === 0 ? 'engine_failed' : 'engine_broke'
      assert.deepEqual(failureOf(await onlyRow(weir)), [outcome, 200, 'upstream_error'])
    })
  }

  for (const stream of [false, true]) {
    it(`has 499 and no code if the caller disconnected${stream ? ' from a stream' : ''}`, async (t) => {
      const until = new Promise<void>(() => {})
      const { weir, engine } = await sharedStage(t, { script: { hold: { afterTokens: stream ? 1 : 0, until } } })
      const client = await rawClient(weir.base)
      client.send(rawChat(weir.key, { stream }))
      if (stream) await client.sees('data: ')
      else await engine.arrived(1)
      client.leave()
      assert.deepEqual(failureOf(await onlyRow(weir)), ['caller_left', 499, null])
    })

    it(`has 200 and no code if nothing failed${stream ? ', streaming' : ''}`, async (t) => {
      const { weir } = await sharedStage(t)
      await (await weir.chat({ stream })).text()
      assert.deepEqual(failureOf(await onlyRow(weir)), ['completed', 200, null])
    })
  }

  it('shows both in the API, in lists and files', async (t) => {
    const { weir } = await sharedStage(t, { script: refusal(400, tooLong) })
    const response = await weir.chat({})
    const id = response.headers.get('x-request-id') ?? ''
    await response.text()
    const shown = { outcome: 'engine_failed', http_status: 400, error_code: 'context_length_exceeded' }
    const { workspace } = weir
    for (const answer of [
      await weir.call(`/usage/${id}`),
      await weir.call('/usage'),
      await weir.admin('GET', `/admin/v1/usage/${id}`),
      await weir.admin('GET', `/admin/v1/usage?workspace=${workspace}`),
      await weir.admin('GET', `/admin/v1/requests?workspace=${workspace}&outcome=failed`),
    ]) {
      const body = (await answer.json()) as Record<string, unknown> & { data?: Record<string, unknown>[] }
      assert.partialDeepStrictEqual(body.data?.[0] ?? body, shown)
    }
    const [head = '', line = ''] = (await (await weir.call('/usage?format=csv')).text()).split('\n')
    const cell = (name: string): string | undefined => line.split(',')[head.split(',').indexOf(name)]
    assert.deepEqual([cell('http_status'), cell('error_code')], ['400', 'context_length_exceeded'])
    const jsonl = (await (await weir.call('/usage?format=jsonl')).text()).trim()
    assert.partialDeepStrictEqual(JSON.parse(jsonl), shown)
  })
})
