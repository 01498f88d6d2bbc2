import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'
import { Type } from 'typebox'
import type { RecordAction } from '../../src/operate/audit/recorded.ts'
import type { SignedIn } from '../../src/workspaces/sessions/workspace-sessions.ts'
import { operatorRoute } from '../../src/server/operator-route.ts'
import { sessionRoute } from '../../src/server/console/session-route.ts'
import type { Exchange } from '../../src/server/exchange.ts'
import { IncomingRequest } from '../../src/server/incoming-request.ts'
import { jsonResponse } from '../../src/server/route.ts'

/** What the routes of the operator and of the console read, refuse and put on record. */

type Method = 'GET' | 'POST'

const body = Type.Object({ name: Type.String({ maxLength: 5 }) })
const query = Type.Object({ limit: Type.Optional(Type.Integer({ minimum: 1 })) })
const operation = {
  path: '/x/{id}/{part}',
  id: 'changeX',
  summary: 'X',
  description: 'X',
  response: jsonResponse(Type.Object({}), {}),
  errors: [],
} as const

function exchangeOf(text: string, queryText = ''): Exchange {
  const headers = { 'content-type': 'application/json' }
  const message = Object.assign(Readable.from(text === '' ? [] : [Buffer.from(text)]), { headers })
  const request = new IncomingRequest(message as unknown as IncomingMessage, '')
  return { request, query: queryText, holdRequest() {} } as unknown as Exchange
}

const parameters = { id: 'a', part: 'b' }
const session = { hasKey: true } as unknown as SignedIn

/** What is put on record, with the state before, and what the handler gets. */
async function served(
  text: string,
  settings: { method?: Method; withBody?: boolean; changesNothing?: boolean; query?: string } = {},
) {
  const { method = 'POST', withBody = true, changesNothing = false, query: queryText = '' } = settings
  const seen: { records: object[]; calls: object[] } = { records: [], calls: [] }
  const record: RecordAction = async ({ state, ...action }, act) => {
    seen.records.push({ ...action, state: await state() })
    await act()
  }
  const answer = async (call: { parameters: object; query: object; body: object }): Promise<void> =>
    void seen.calls.push({ parameters: call.parameters, query: call.query, body: call.body })
  const route = operatorRoute({
    ...operation,
    method,
    query,
    changesNothing,
    ...(withBody ? { body } : {}),
    state: async (call) => ({ before: call.parameters.id }),
    answer,
  })
  await route.answer(exchangeOf(text, queryText), parameters, record)
  return seen
}

describe('a route of the operator', () => {
  it('audits what was changed, by which id, with the body and the state before', async () => {
    assert.deepEqual(await served('{"name":"acme"}', { query: 'limit=5' }), {
      records: [{ action: 'changeX', subject: 'a b', body: { name: 'acme' }, state: { before: 'a' } }],
      calls: [{ parameters, query: { limit: 5 }, body: { name: 'acme' } }],
    })
    const { records } = await served('', { withBody: false })
    assert.deepEqual(records, [{ action: 'changeX', subject: 'a b', body: undefined, state: { before: 'a' } }])
  })

  it('does not audit a call that changes nothing', async () => {
    for (const settings of [{ method: 'GET', withBody: false }, { changesNothing: true }] as const) {
      const { records, calls } = await served('{"name":"acme"}', settings)
      assert.deepEqual([records, calls.length], [[], 1])
    }
  })

  it('does nothing with a body or a query that is wrong', async () => {
    for (const [text, settings, expected] of [
      ['{"name":"longer"}', {}, { code: 'invalid_value', param: 'name' }],
      ['{}', {}, { code: 'missing_required_parameter', param: 'name' }],
      ['{"name":"a","nmae":1}', {}, { param: 'nmae' }],
      ['{"name":', {}, { code: 'invalid_json' }],
      [JSON.stringify({ name: 'a', more: 'x'.repeat(1024 * 1024) }), {}, { code: 'request_too_large' }],
      ['{"name":"a"}', { query: 'limit=0' }, { code: 'invalid_value', param: 'limit' }],
    ] as const) {
      await assert.rejects(served(text, settings), expected)
    }
  })

  it('documents the errors of reading its body', () => {
    const codes = (withBody: boolean, withQuery: boolean): readonly string[] =>
      operatorRoute({
        ...operation,
        method: 'POST',
        errors: ['conflict'],
        ...(withBody ? { body } : {}),
        ...(withQuery ? { query } : {}),
        answer: async () => {},
      }).operation?.errors ?? []
    assert.deepEqual(codes(false, false), ['conflict'])
    assert.deepEqual(codes(false, true), ['conflict', 'invalid_value'])
    assert.equal(codes(true, true).length, 8)
  })
})

describe('a route of the console', () => {
  const route = (withAction: boolean, seen: object[]) =>
    sessionRoute({
      ...operation,
      method: 'POST',
      query,
      body,
      ...(withAction ? { action: () => ({ action: 'changeX', subject: 'a', state: async () => undefined }) } : {}),
      answer: async ({ session: own, body: given }) => void seen.push([own, given]),
    })

  it('audits its action with the body, if it has one', async () => {
    for (const withAction of [true, false]) {
      const seen: object[] = []
      const records: object[] = []
      const record: RecordAction = async ({ state: _state, ...action }, act) => {
        records.push(action)
        await act()
      }
      await route(withAction, seen).answer(exchangeOf('{"name":"a"}'), parameters, session, record)
      assert.deepEqual(seen, [[session, { name: 'a' }]])
      assert.deepEqual(records, withAction ? [{ action: 'changeX', subject: 'a', body: { name: 'a' } }] : [])
    }
  })

  it('refuses unknown fields, and a body above 64 KiB', async () => {
    const ask = (text: string): Promise<void> =>
      route(false, []).answer(exchangeOf(text), parameters, session, (_, act) => act())
    await assert.rejects(ask('{"name":"a","b":1}'), { param: 'b' })
    const space = ' '.repeat(64 * 1024 - '{"name":"a"}'.length)
    await ask(`{"name":"a"}${space}`)
    await assert.rejects(ask(`{"name":"a"}${space} `), { code: 'request_too_large' })
  })

  it('is below the path of the console', () => assert.equal(route(false, []).path, '/console/api/x/{id}/{part}'))
})
