import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { Errors } from 'typebox/schema'
import type { RecordAction } from '../../src/operate/audit/recorded.ts'
import type { SessionRoute } from '../../src/server/console/session-route.ts'
import { Exchange } from '../../src/server/exchange.ts'
import { IncomingRequest } from '../../src/server/incoming-request.ts'
import type { KeyRoute } from '../../src/server/key-route.ts'
import type { OperatorRoute } from '../../src/server/operator-route.ts'
import type { OpenRoute } from '../../src/server/route.ts'
import { readQuery, routeTable } from '../../src/server/router.ts'
import type { SignedIn } from '../../src/workspaces/sessions/workspace-sessions.ts'
import type { Caller } from '../../src/workspaces/workspace.ts'
import { exchangeListener } from './exchange-listener.ts'
import { undocumented, type DocumentSchema } from './openapi.ts'

type AnyRoute = OpenRoute | KeyRoute | SessionRoute | OperatorRoute

interface Asking {
  /** Sent as JSON, or as it is if it is a buffer. */
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
  /** For a route that needs a key. */
  readonly caller?: Caller
  /** For a route of the console. */
  readonly session?: SignedIn
  readonly rate?: Exchange['rate']
}

interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[]>>
  readonly bytes: Buffer
  readonly text: string
  /** Of an answer in JSON. */
  readonly body: unknown
  /** What was put on record, with the state before, as JSON has it. */
  readonly recorded: readonly unknown[]
}

/** The address of the caller. */
export const CALLER_ADDRESS = '192.0.2.1'

/** An exchange without a connection, for a request such as `GET /admin/v1/keys?limit=1`. */
export function exchangeFor(
  request: string,
  { body, headers, rate }: Omit<Asking, 'caller' | 'session'> = {},
): { readonly exchange: Exchange; readonly answered: Omit<Answered, 'recorded'> } {
  const [method = '', target = ''] = request.split(' ', 2)
  const message = Object.assign(
    Readable.from(body ? [Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body))] : []),
    {
      method,
      url: target,
      headers: { 'content-type': 'application/json', ...headers },
      complete: true,
    },
  )
  const answered = {
    status: 0,
    headers: {},
    bytes: Buffer.alloc(0),
    get text(): string {
      return answered.bytes.toString()
    },
    get body(): unknown {
      return JSON.parse(answered.text)
    },
  }
  const response = {
    writableLength: 0,
    on() {},
    once() {},
    writeHead: (status: number, head: Answered['headers']) => Object.assign(answered, { status, headers: head }),
    write(piece: string | Buffer) {
      answered.bytes = Buffer.concat([answered.bytes, Buffer.from(piece)])
      return true
    },
    end: (piece: string | Buffer) => void response.write(piece),
  }
  const exchange = new Exchange(
    new IncomingRequest(message as unknown as IncomingMessage, CALLER_ADDRESS),
    response as unknown as ServerResponse,
    { cut() {}, answered() {} },
    exchangeListener(),
  )
  exchange.rate = rate
  return { exchange, answered }
}

/** Sends a request to one of the routes, without a listener in front of them. */
export async function ask(routes: readonly AnyRoute[], request: string, asking: Asking = {}): Promise<Answered> {
  const { exchange, answered } = exchangeFor(request, asking)
  const recorded: unknown[] = []
  const record: RecordAction = async ({ state, ...action }, act) => {
    // What does not exist yet has no state.
    recorded.push(JSON.parse(JSON.stringify({ ...action, state: await state().catch(() => undefined) })))
    return act()
  }
  const match = routeTable(routes).find(exchange.method, exchange.path)
  assert.ok(match.kind === 'found', `${request} has no route`)
  const { route, parameters } = match
  const { caller, session } = asking
  if (route.access === 'open') await route.answer(exchange, parameters)
  else if (route.access === 'operator') await route.answer(exchange, parameters, record)
  else if (route.access === 'key') {
    assert.ok(caller)
    await route.answer({ exchange, parameters, query: readQuery(route.operation?.query, exchange.query), caller })
  } else {
    assert.ok(session)
    await route.answer(exchange, parameters, session, record)
  }
  return Object.assign(answered, { recorded })
}

interface DocumentedAnswer extends Answered {
  readonly body: any // oxlint-disable-line typescript/no-explicit-any -- the shape is what the tests are about
}

/** The same, of a JSON answer that has to have exactly the fields of its schema. */
export async function askDocumented(
  routes: readonly AnyRoute[],
  request: string,
  asking: Asking = {},
): Promise<DocumentedAnswer> {
  const answered = await ask(routes, request, asking)
  const [method = '', path = ''] = request.split(/[ ?]/, 2)
  const match = routeTable(routes).find(method, path)
  const schema = match.kind === 'found' && match.route.operation?.response.content['application/json']?.schema
  assert.ok(schema, `${request} has no schema`)
  assert.deepEqual(Errors(schema, answered.body), [true, []], request)
  assert.deepEqual(undocumented(schema as DocumentSchema, answered.body), [], request)
  return answered
}
