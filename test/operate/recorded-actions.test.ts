import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { recorded, type Action } from '../../src/operate/audit/recorded.ts'
import type { AuditStore } from '../../src/operate/audit/audit-store.ts'

type Begun = Parameters<AuditStore['beginAudit']>[0]

function stage() {
  const events: string[] = []
  const begun: Begun[] = []
  const ended: unknown[][] = []
  const audit = {
    async beginAudit(entry: Begun) {
      events.push('begin')
      begun.push(entry)
      return 7
    },
    async endAudit(...end: readonly unknown[]) {
      events.push('end')
      ended.push([...end])
    },
  } as unknown as AuditStore
  const parts = { audit, clock: { now: () => 5, monotonic: () => 0 } }
  const act = (action: Partial<Action>, does: () => Promise<unknown> = async () => 'result') =>
    recorded(
      parts,
      { actor: 'operator', requestId: 'r' },
      { action: 'change', subject: 'ws', state: async () => undefined, ...action } as Action,
      () => {
        events.push('act')
        return does()
      },
    )
  return { events, begun, ended, audit, act }
}

describe('an audited action', () => {
  it('is recorded before it is done, with the state before and after', async () => {
    const { events, begun, ended, act } = stage()
    let limit = 1
    const result = await act({ body: { limit: 2 }, state: async () => ({ limit }) }, async () => (limit = 2))
    assert.equal(result, 2)
    assert.deepEqual(events, ['begin', 'act', 'end'])
    assert.deepEqual(begun, [
      {
        at: 5,
        actor: 'operator',
        requestId: 'r',
        action: 'change',
        subject: 'ws',
        request: '{"limit":2}',
        before: '{"limit":1}',
      },
    ])
    assert.deepEqual(ended, [[7, 'done', '{"limit":2}']])
  })

  it('is not done if it cannot be recorded, and is recorded as refused if it fails', async () => {
    const { events, ended, audit, act } = stage()
    await assert.rejects(
      act({}, () => Promise.reject(new Error('no'))),
      /no/,
    )
    assert.deepEqual(ended, [[7, 'refused', null]])
    audit.beginAudit = () => Promise.reject(new Error('the store is away'))
    events.length = 0
    await assert.rejects(act({}), /the store is away/)
    assert.deepEqual(events, [])
  })

  it('has no secret, wherever it is', async () => {
    const { begun, act } = stage()
    const secrets = { key: 'a', token: 'b', link: 'c', secret: 'd' }
    await act({ body: { ...secrets, name: 'n', more: [secrets] } })
    const hidden = { key: '…', token: '…', link: '…', secret: '…' }
    assert.deepEqual(JSON.parse(begun[0]?.request ?? ''), { ...hidden, name: 'n', more: [hidden] })
  })

  it('has no state if there is none, or if it cannot be read, and at most 20,000 characters of it', async () => {
    const { begun, act } = stage()
    await act({ state: () => Promise.reject(new Error('gone')) })
    await act({ body: { text: 'x'.repeat(20_000 - 11) } })
    await act({ body: { text: 'x'.repeat(20_000) } })
    assert.deepEqual(
      begun.map(({ request, before }) => [request?.length ?? null, before]),
      [
        [null, null],
        [20_000, null],
        [20_000, null],
      ],
    )
    assert.equal(begun[1]?.request?.at(-1), '}')
    assert.equal(begun[2]?.request?.at(-1), 'x')
  })
})
