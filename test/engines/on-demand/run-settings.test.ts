import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { EngineRun } from '../../../src/catalog/model.ts'
import { environmentOf, settingsOf } from '../../../src/engines/on-demand/run-settings.ts'

describe('the environment of an engine on demand', () => {
  const run = (env: Readonly<Record<string, string>>) => ({ env, port: 8101 })
  const ofWeir = { PATH: '/bin', WEIR_OPERATOR_TOKEN: 'secret', MALLOC_ARENA_MAX: '1' }

  it("is that of Weir without Weir's own settings", () => {
    assert.deepEqual(environmentOf(run({}), ofWeir), { PATH: '/bin' })
  })

  it('has what the catalog adds, with the port', () => {
    const added = { ADDRESS: '127.0.0.1:${PORT}', MALLOC_ARENA_MAX: '4' }
    const environment = environmentOf(run(added), ofWeir)
    assert.deepEqual(environment, { PATH: '/bin', ADDRESS: '127.0.0.1:8101', MALLOC_ARENA_MAX: '4' })
  })
})

describe('what an engine on demand needs', () => {
  const device = { name: 'gpu0', bytes: 100 }
  const run = (changes: Partial<EngineRun>) => ({ port: 8101, isPinned: false, ...changes }) as EngineRun

  it('is its port, its group, and what is known of its memory', () => {
    const memory = { bytes: 60, source: 'measured', measuredBytes: 60 } as const
    assert.deepEqual(settingsOf(run({}), undefined), {
      needs: new Map([['port 8101', 1]]),
      needsAsleep: undefined,
      stopAfterIdleMs: Infinity,
      isPinned: false,
    })
    const needs = [['port 8101', 1] as const, ['group small', 1] as const]
    const grouped = settingsOf(run({ group: 'small', device, isPinned: true, stopAfterIdleMs: 5 }), memory)
    assert.deepEqual(grouped, {
      needs: new Map([...needs, ['gpu0', 60]]),
      needsAsleep: undefined,
      stopAfterIdleMs: 5,
      isPinned: true,
    })
  })

  it('is less while it sleeps: its port, and what it keeps of its device', () => {
    const asleep = (changes: Partial<EngineRun>) =>
      settingsOf(run({ sleep: { bytes: 7 }, ...changes }), undefined).needsAsleep
    assert.deepEqual(
      asleep({ group: 'small', device }),
      new Map([
        ['port 8101', 1],
        ['gpu0', 7],
      ] as const),
    )
    assert.deepEqual(asleep({}), new Map([['port 8101', 1]]))
  })
})
