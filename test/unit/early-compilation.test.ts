import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, it } from 'node:test'
import { EARLY_COMPILATION } from '../../src/commands/early-compilation.ts'

describe('early compilation', () => {
  it('sets numbers that this V8 has, below its own defaults where calls are counted', () => {
    const options = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' })
    for (const [name, value] of Object.entries(EARLY_COMPILATION)) {
      const usual = new RegExp(`default: --${name}=(\\d+)`).exec(options)?.[1]
      assert.ok(usual, `V8 does not know --${name}`)
      assert.equal(
        value < Number(usual),
        !name.startsWith('concurrent'),
        `${name} is ${value}, and ${usual} by default`,
      )
    }
  })
})
