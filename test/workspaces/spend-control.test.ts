import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Workspace } from '../../src/workspaces/workspace.ts'
import type { Ledger, LedgerStatus } from '../../src/ledger/ledger.ts'
import type { UsageStore } from '../../src/billing/usage/usage-store.ts'
import { openSpendControl } from '../../src/workspaces/spend-limits/spend-control.ts'
import { spendScripts } from '../../src/workspaces/spend-limits/redis/account-scripts.ts'
import { scriptedLink } from '../support/scripted-link.ts'
import { handClock, turn } from '../support/hand-clock.ts'

/** About the first account of a call. */
function firstReport({ values }: { readonly values: readonly unknown[] }): unknown {
  return (JSON.parse(String(values[0])) as { accounts: readonly unknown[] }).accounts[0]
}

describe('where spend limits are enforced', () => {
  const limited = { id: 'ws', name: 'acme', spendLimit: { amount: 100n, isSoft: false } } as Workspace
  const books = {
    usageSums: async () => [{ group: 'ws', amount: 60n }],
    usageTotal: async () => ({ amount: 60n }),
  } as unknown as UsageStore
  const journal = { owner: 'journal', predecessor: '' }

  function parts(t: { mock: { timers: Parameters<typeof handClock>[0] } }) {
    const scripted = scriptedLink()
    const ledger = { lagMs: 0, isReadable: true, reads: 0 }
    const workspaces = { list: [limited] as readonly Workspace[] }
    return {
      scripted,
      ledger,
      workspaces,
      parts: {
        store: books,
        ledger: {
          status: () => ({ lagMs: ledger.lagMs }) as LedgerStatus,
          async readable() {
            ledger.reads += 1
            if (!ledger.isReadable) throw new Error('the database is away')
          },
        } as Ledger,
        clock: handClock(t.mock.timers),
        accounts: { workspaces: () => workspaces.list },
        events: { limitReached() {} },
      },
    }
  }

  for (const missing of ['link', 'journal'] as const) {
    it(`is this process if there is no ${missing === 'link' ? 'Redis' : 'other process on the database'}`, async (t) => {
      const { parts: given, scripted } = parts(t)
      const both = { link: scripted.link, journal }
      const control = await openSpendControl({ ...given, ...both, [missing]: undefined })
      await control.hold(limited, 40n)
      await assert.rejects(control.hold(limited, 1n), { code: 'spend_limit_exceeded' })
      assert.deepEqual(scripted.followers, [])
      await control.close()
    })
  }

  it('[S1] is Redis otherwise, which is notified of delivered rows if the journal keeps up', async (t) => {
    const { parts: given, scripted, ledger } = parts(t)
    const control = await openSpendControl({ ...given, link: scripted.link, journal })
    scripted.join()
    const account = { generation: 1, spent: '0', held: '0', unread: {}, known: {} }
    async function answered(decisions: string): Promise<{ counts: Record<string, [string, string]> }> {
      const call = scripted.next(spendScripts.reserve)
      call.answer(JSON.stringify({ state: 'applied', quiet: 0, decisions, accounts: [account] }))
      await turn()
      await turn()
      return firstReport(call) as { counts: Record<string, [string, string]> }
    }
    const holding = control.hold(limited, 10n)
    await answered('1')
    ;(await holding).settle(5n)
    await answered('')
    for (const [lagMs, isReadable] of [
      [2001, true],
      [0, false],
    ] as const) {
      Object.assign(ledger, { lagMs, isReadable })
      scripted.heartbeat()
      assert.deepEqual(Object.values((await answered('')).counts), [['5', '0']])
    }
    assert.equal(ledger.reads, 1, 'a journal that lags is not asked')
    Object.assign(ledger, { lagMs: 2000, isReadable: true })
    scripted.heartbeat()
    await answered('')
    assert.deepEqual(Object.values((await answered('')).counts), [['5', '5']])
  })

  it('uses the limit in force', async (t) => {
    const { parts: given, scripted, workspaces } = parts(t)
    const control = await openSpendControl({ ...given, link: scripted.link, journal })
    scripted.join()
    void control.hold(limited, 10n).catch(() => {})
    const limitSent = (): unknown => {
      const call = scripted.next(spendScripts.reserve)
      call.fail()
      return (firstReport(call) as { limit?: string }).limit
    }
    assert.equal(limitSent(), '100')
    await turn()
    for (const [amount, said] of [
      [70n, '70'],
      [80n, '80'],
    ] as const) {
      workspaces.list = [{ ...limited, spendLimit: { amount, isSoft: false } }]
      scripted.heartbeat()
      assert.equal(limitSent(), said)
      await turn()
    }
    workspaces.list = []
    scripted.heartbeat()
    assert.deepEqual(scripted.sent, [])
  })
})
