import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { environmentOf } from '../../../src/engines/on-demand/run-settings.ts'

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
