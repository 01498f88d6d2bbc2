import { byteBudget } from '../../src/core/byte-budget.ts'
import { Exchange, type ExchangeListener, type ExchangePlace } from '../../src/http/exchange.ts'
import type { IncomingRequest } from '../../src/http/wire/incoming-request.ts'
import type { OutgoingResponse } from '../../src/http/wire/outgoing-response.ts'

/** What an Exchange needs when a test makes one by itself. */
export function exchangeListener(changes: Partial<ExchangeListener> = {}): ExchangeListener {
  return { memory: byteBudget(Infinity), stallMs: 60_000, commonHeaders: () => ({}), ...changes }
}

/** What an Exchange uses of a response, so that a test can say what the caller takes. */
export type ScriptedResponse = Partial<
  Pick<OutgoingResponse, 'unsent' | 'begin' | 'write' | 'end' | 'whenSent' | 'onTaken'>
>

/** An Exchange without a connection. */
export function looseExchange(
  method: string,
  response: ScriptedResponse = {},
  changes: Partial<ExchangeListener & ExchangePlace> = {},
): Exchange {
  const { cut = () => {}, answered = () => {}, ...listener } = changes
  const defaults = { unsent: 0, begin() {}, write: () => true, end() {}, whenSent() {} }
  return new Exchange(
    { method, target: '/', headers: {}, address: '' } as unknown as IncomingRequest,
    Object.assign(response, { ...defaults, ...response }) as unknown as OutgoingResponse,
    { cut, answered },
    exchangeListener(listener),
  )
}
