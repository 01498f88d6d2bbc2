import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Config } from '../../src/config.ts'
import type { PendingSetting } from '../../src/shared/settings.ts'
import type { LiveSettings } from '../../src/operate/reload/live-settings.ts'
import type { Change } from '../../src/cluster/changes/change-feed.ts'
import { openReloading } from '../../src/operate/reload/reloading.ts'
import { createTelemetry } from '../../src/operate/telemetry/telemetry.ts'
import { turn } from '../support/hand-clock.ts'

function stage() {
  const done: string[] = []
  const written: string[] = []
  const { log } = createTelemetry('info', '1', { write: (line) => void written.push(line), flush: async () => {} })
  const state = {
    taken: [] as string[],
    pending: [] as PendingSetting[],
    unreached: {} as Partial<Record<Change, string[]>>,
    mistake: undefined as Error | undefined,
  }
  const reloading = openReloading({
    config: {
      reread() {
        if (state.mistake) throw state.mistake
        return { logLevel: 'error' } as Config
      },
    },
    settings: { take: () => state.taken, pending: () => state.pending } as unknown as LiveSettings,
    catalog: {
      models: () => [{}, {}] as never,
      reload: async (options) => void done.push(`reload ${options?.force ? 'by force' : ''}`),
    },
    changes: {
      async announce(change) {
        await turn()
        done.push(change)
        return state.unreached[change] ?? []
      },
      subscribe: () => () => {},
    },
    log,
  })
  const logged = () => written.splice(0).map((line) => JSON.parse(line) as Record<string, unknown>)
  return { reloading, state, done, log, logged }
}

const pending = (key: string, needs: PendingSetting['needs'], value = 'x') => ({ key, needs, value }) as PendingSetting

describe('a reload', () => {
  it('of accounts reads accounts, keys, prices and sessions, and names each replica that did not answer once', async () => {
    const { reloading, state, done } = stage()
    state.unreached = { accounts: ['two'], keys: ['three'], prices: ['two'] }
    assert.deepEqual(await reloading.accounts(), ['two', 'three'])
    assert.deepEqual(done, ['accounts', 'keys', 'prices', 'sessions'])
  })

  it('of the catalog is forced on request, and reports which settings need a restart', async () => {
    const { reloading, state, done } = stage()
    state.unreached = { catalog: ['two'] }
    state.pending = [pending('server.port', 'restart'), pending('log.level', 'reload')]
    assert.deepEqual(await reloading.catalog({ force: false }), {
      models: 2,
      unreached: ['two'],
      needsRestart: [state.pending[0]],
    })
    assert.deepEqual(done.splice(0), ['catalog'])
    await reloading.catalog({ force: true })
    assert.deepEqual(done, ['reload by force', 'catalog'])
    assert.deepEqual(reloading.needRestart(), [state.pending[0]])
  })

  it('applies settings, and reports the need for a restart once for the same settings', async () => {
    const { reloading, state, log, logged } = stage()
    await reloading.catalog({ force: false })
    assert.deepEqual([logged(), log.level], [[], 'info'])
    state.taken = ['server.drain_ms']
    state.pending = [pending('server.port', 'restart')]
    await reloading.catalog({ force: false })
    assert.deepEqual(
      logged().map(({ level, settings }) => [level, settings]),
      [
        [30, ['server.drain_ms']],
        [40, ['server.port']],
      ],
    )
    state.taken = []
    await reloading.catalog({ force: false })
    assert.deepEqual(logged(), [])
    state.pending = [pending('server.port', 'restart'), pending('catalog', 'restart', 'other.yaml')]
    await reloading.catalog({ force: false })
    assert.deepEqual(
      logged().map(({ settings, file }) => settings ?? file),
      [['server.port', 'catalog'], 'other.yaml'],
    )
    state.pending = []
    state.taken = ['log.level']
    await reloading.catalog({ force: false })
    assert.equal(log.level, 'error')
  })

  it('of files logs a mistake in them, and keeps what was in force', async () => {
    const { reloading, state, logged } = stage()
    state.mistake = new Error('weir.yaml:3: is wrong')
    reloading.files()
    for (let turns = 0; turns < 5; turns++) await turn()
    assert.deepEqual(
      logged().map(({ level, reason }) => [level, reason]),
      [[50, 'weir.yaml:3: is wrong']],
    )
    assert.throws(() => reloading.needRestart(), /is wrong/)
  })
})
