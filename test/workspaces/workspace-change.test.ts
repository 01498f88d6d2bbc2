import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Accounts } from '../../src/workspaces/accounts.ts'
import type { SpendLimit } from '../../src/workspaces/workspace.ts'
import { changeWorkspace, type WorkspaceChange } from '../../src/workspaces/workspace-change.ts'

/** Accounts with one workspace, which only record the requested changes. */
function stage(spendLimit: SpendLimit | null = null) {
  const changes: unknown[][] = []
  const noted =
    (what: string) =>
    async (...args: unknown[]) =>
      void changes.push([what, ...args])
  const accounts = {
    workspace: () => ({
      spendLimit,
      buyer: { name: 'Ann', abn: '51824753556', address: 'Sydney', purchaseOrder: 'PO 7', email: null },
    }),
    setRequestsPerMinute: noted('rate'),
    setTokensPerMinute: noted('tokens'),
    setSpendLimit: noted('limit'),
    setBuyer: noted('buyer'),
  } as unknown as Accounts
  return { changes, change: (it: WorkspaceChange) => changeWorkspace(accounts, 'w', it) }
}

describe('a change of a workspace', () => {
  for (const [param, wrong] of [
    ['buyer.abn', { buyer: { abn: '51 824 753 557' } }],
    ['spend_limit', { spend_limit: '-1' }],
    ['buyer.email', { buyer: { email: 'a@b.example, c@d.example' } }],
    ['buyer.email', { buyer: { email: 'a@b.example\nBcc: c@d.example' } }],
    ['buyer.email', { buyer: { email: `a@${'b.'.repeat(126)}c` } }],
  ] as const) {
    it(`changes nothing at all if ${param} is wrong: ${JSON.stringify(wrong).slice(0, 60)}`, async () => {
      const { changes, change } = stage()
      const right = { requests_per_minute: 5, spend_limit: '1.00', buyer: { name: 'Bob' } }
      await assert.rejects(change({ ...right, ...wrong }), { code: 'invalid_value', param })
      assert.deepEqual(changes, [])
    })
  }

  it('sets the amount and the kind of a spend limit independently; a new one is hard', async () => {
    const soft = { amount: 10n ** 12n, isSoft: true }
    for (const [before, asked, after] of [
      [null, { spend_limit: '2.00' }, { amount: 2n * 10n ** 12n, isSoft: false }],
      [null, { spend_limit: '2.00', spend_limit_kind: 'soft' }, { amount: 2n * 10n ** 12n, isSoft: true }],
      [soft, { spend_limit: '2.00' }, { amount: 2n * 10n ** 12n, isSoft: true }],
      [soft, { spend_limit_kind: 'hard' }, { ...soft, isSoft: false }],
      [soft, { spend_limit: null }, null],
    ] as const) {
      const { changes, change } = stage(before)
      await change(asked)
      assert.deepEqual(changes, [['limit', 'w', after]])
    }
    const { changes, change } = stage()
    await assert.rejects(change({ spend_limit_kind: 'soft' }), { param: 'spend_limit_kind' })
    assert.deepEqual(changes, [])
  })

  it('keeps what is missing, and clears what is null', async () => {
    const { changes, change } = stage()
    await change({})
    assert.deepEqual(changes, [])
    await change({ requests_per_minute: null, spend_limit: null, buyer: { address: null, email: 'a@b.example' } })
    assert.deepEqual(changes, [
      ['rate', 'w', null],
      ['limit', 'w', null],
      ['buyer', 'w', { name: 'Ann', abn: '51824753556', address: null, purchaseOrder: 'PO 7', email: 'a@b.example' }],
    ])
    await change({ tokens_per_minute: null, buyer: { name: null, abn: null, purchase_order: null } })
    assert.deepEqual(changes.slice(3), [
      ['tokens', 'w', null],
      ['buyer', 'w', { name: null, abn: null, address: 'Sydney', purchaseOrder: null, email: null }],
    ])
  })
})
