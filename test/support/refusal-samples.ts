import type { Refusal } from '../../src/billing/refused-requests/refusals.ts'

let lastId = 0

/** A refusal for tests that only care about some of its values. Each has an id of its own. */
export function sampleRefusal(changes: Partial<Refusal> = {}): Refusal {
  return {
    requestId: `refused-${String(++lastId).padStart(9, '0')}`,
    at: 3_600_005,
    workspaceId: 'ws_1',
    keyId: 'key_1',
    endpoint: '/chat/completions',
    model: '',
    code: 'rate_limit_exceeded',
    httpStatus: 429,
    param: '',
    reason: 'Too many requests in this minute: the workspace may send 600. Try again in 12 s.',
    ...changes,
  }
}
