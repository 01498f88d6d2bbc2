import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, it } from 'node:test'
import {
  CALLS_IN_A_RUSH,
  CALLS_OTHERWISE,
  compileEarly,
  EARLY_COMPILATION,
  LAST_STEP,
  LOOK_MS,
} from '../../src/commands/early-compilation.ts'

const options = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' })

function usual(name: string): number {
  const found = new RegExp(`default: --${name}=(\\d+)`).exec(options)?.[1]
  assert.ok(found, `V8 does not know --${name}`)
  return Number(found)
}

describe('early compilation', () => {
  it('sets numbers that this V8 has, below its own defaults where calls are counted', () => {
    for (const [name, value] of Object.entries(EARLY_COMPILATION)) {
      assert.equal(value < usual(name), !name.startsWith('concurrent'), `${name} is ${value}`)
    }
    assert.ok(CALLS_IN_A_RUSH < usual(LAST_STEP))
    assert.ok(CALLS_OTHERWISE > usual(LAST_STEP))
  })

  it('takes the last step sooner while requests come fast enough to pay for it', (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const flags = new Map<string, string>()
    let requests = 1_000_000
    const stop = compileEarly(
      () => requests,
      (flag) => void flags.set(...(flag.slice(2).split('=') as [string, string])),
    )
    const callsAfter = (perSecond: number): number => {
      requests += (perSecond * LOOK_MS) / 1000
      t.mock.timers.tick(LOOK_MS)
      return Number(flags.get(LAST_STEP))
    }
    assert.equal(Number(flags.get(LAST_STEP)), CALLS_IN_A_RUSH, 'a rush is expected')
    for (const [name, value] of Object.entries(EARLY_COMPILATION)) assert.equal(Number(flags.get(name)), value)
    assert.equal(callsAfter(500), CALLS_IN_A_RUSH, 'the first requests say nothing')
    assert.equal(callsAfter(500), CALLS_OTHERWISE)
    assert.equal(callsAfter(4000), CALLS_IN_A_RUSH)
    assert.equal(callsAfter(1000), CALLS_IN_A_RUSH)
    assert.equal(callsAfter(990), CALLS_OTHERWISE)
    assert.equal(callsAfter(0), CALLS_OTHERWISE)
    assert.equal(callsAfter(0), CALLS_IN_A_RUSH, 'a rush is expected again after a pause')
    assert.equal(callsAfter(500), CALLS_IN_A_RUSH)
    assert.equal(callsAfter(500), CALLS_OTHERWISE)
    stop()
    assert.equal(callsAfter(4000), CALLS_OTHERWISE)
  })
})
