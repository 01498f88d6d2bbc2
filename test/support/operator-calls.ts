import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { Errors } from 'typebox/schema'
import type { Action } from '../../src/operate/audit/recorded.ts'
import { IncomingRequest } from '../../src/server/incoming-request.ts'
import type { OperatorRoute } from '../../src/server/operator-route.ts'
import { looseExchange } from './exchange-listener.ts'
import { undocumented, type DocumentSchema } from './openapi.ts'

interface Given {
  readonly parameters?: Readonly<Record<string, string>>
  readonly query?: string
  readonly body?: object
}

export interface OperatorAnswer<Answer> {
  readonly json: Answer
  /** What the audit log gets, with the state before; undefined if nothing. */
  readonly recorded: object | undefined
}

/** Calls the operator's routes in this process. A JSON answer has exactly the fields of its schema. */
export function operatorCalls(routes: readonly OperatorRoute[]) {
  // oxlint-disable-next-line typescript/no-explicit-any -- the shape is what the tests are about
  return async <Answer = any>(
    id: string,
    { parameters = {}, query = '', body }: Given = {},
  ): Promise<OperatorAnswer<Answer>> => {
    const route = routes.find(({ operation }) => operation?.id === id) ?? assert.fail(`there is no operation ${id}`)
    let text = ''
    const exchange = looseExchange(route.method, { end: (piece) => void (text += String(piece ?? '')) })
    const bytes = body === undefined ? [] : [Buffer.from(JSON.stringify(body))]
    const message = Object.assign(Readable.from(bytes), { headers: { 'content-type': 'application/json' } })
    Object.assign(exchange, { query, request: new IncomingRequest(message as unknown as IncomingMessage, '') })
    let recorded: object | undefined
    await route.answer(exchange, parameters, async ({ state, ...action }: Action, act) => {
      recorded = { ...action, state: await state() }
      await act()
    })
    const json = JSON.parse(text) as Answer
    const schema = route.operation?.response.content['application/json']?.schema
    assert.ok(schema)
    assert.deepEqual(Errors(schema, json), [true, []], id)
    assert.deepEqual(undocumented(schema as DocumentSchema, json), [], id)
    return { json, recorded }
  }
}
