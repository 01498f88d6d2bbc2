import { byteBudget } from '../../src/core/byte-budget.ts'
import type { ExchangeListener } from '../../src/http/exchange.ts'

/** What an Exchange needs when a test makes one by itself. */
export function exchangeListener(changes: Partial<ExchangeListener> = {}): ExchangeListener {
  return {
    memory: byteBudget(Infinity),
    stallMs: 60_000,
    commonHeaders: () => ({}),
    exchangeOver() {},
    exchangeSent() {},
    ...changes,
  }
}
