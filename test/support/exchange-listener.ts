import type { ServerResponse } from 'node:http'
import { byteBudget } from '../../src/shared/byte-budget.ts'
import { Exchange, type ExchangeListener, type ExchangePlace } from '../../src/server/exchange.ts'
import type { IncomingRequest } from '../../src/server/incoming-request.ts'

/** What an Exchange needs when a test makes one by itself. */
export function exchangeListener(changes: Partial<ExchangeListener> = {}): ExchangeListener {
  return { memory: byteBudget(Infinity), stallMs: 60_000, commonHeaders: () => ({}), ...changes }
}

/** What an Exchange uses of a response, so that a test can say what the caller takes. */
export interface ScriptedResponse {
  writableLength?: number
  writeHead?(status: number, headers: Record<string, string>): void
  write?(piece: string | Buffer): boolean
  end?(piece?: string | Buffer): void
  /** The caller has taken what was written. Set by the exchange when it waits for that. */
  drained?(): void
}

/** An Exchange without a connection. */
export function looseExchange(
  method: string,
  response: ScriptedResponse = {},
  changes: Partial<ExchangeListener & ExchangePlace> = {},
): Exchange {
  const { cut = () => {}, answered = () => {}, ...listener } = changes
  const defaults = { writableLength: 0, writeHead() {}, write: () => true, end() {} }
  const on = (_drain: string, callback: () => void): void => void (response.drained = callback)
  const once = (): void => {}
  return new Exchange(
    { method, target: '/', headers: {}, address: '', isComplete: true } as unknown as IncomingRequest,
    Object.assign(response, { on, once, ...defaults, ...response }) as unknown as ServerResponse,
    { cut, answered },
    exchangeListener(listener),
  )
}
