import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import {
  billedMs,
  forge,
  honestRecordings,
  playedMs,
  TOLERANCE_MS,
  type Field,
  type Honest,
} from '../support/audio-forgery.ts'
import { runLength } from '../support/long-run.ts'

/** Numbers at which formats and decoders change their mind, and any other. */
const value = fc.oneof(
  fc.constantFrom(0n, 1n, 2n, 0x7fn, 0xffn, 0xffffn, 0x7fffffffn, 0xffffffffn, 2n ** 63n - 1n, 2n ** 64n - 1n),
  fc.bigInt({ min: 0n, max: 100_000n }),
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
)

function changesOf({ fields }: Honest): fc.Arbitrary<readonly (readonly [Field, bigint])[]> {
  return fc.array(fc.tuple(fc.constantFrom(...fields), value), { minLength: 1, maxLength: 4 })
}

describe('a forged recording', () => {
  for (const honest of honestRecordings()) {
    it(`[M4] costs what a decoder plays: ${honest.name}`, async () => {
      const honestMs = await playedMs(honest.bytes)
      assert.ok(honestMs !== undefined && honestMs > 700, 'the decoder plays the honest recording')
      const billed = (await billedMs(honest.bytes)) ?? 0
      // Some encoders add up to a frame at each end, which this decoder leaves out.
      assert.ok(billed > honestMs - 2 && billed < honestMs + 100, `honest: ${billed} for ${honestMs}`)
      const costsEnough = fc.asyncProperty(changesOf(honest), async (changes) => {
        const forged = forge(honest, changes)
        const forgedMs = await billedMs(forged)
        // A refusal costs the engine nothing.
        if (forgedMs === undefined) return
        const decoded = (await playedMs(forged)) ?? 0
        const isOnlyClaimed = changes.every(([field]) => field.kind === 'claim')
        const truth = Math.max(decoded, isOnlyClaimed ? honestMs : 0)
        const what = changes.map(([field, to]) => `${field.name} = ${to}`).join(', ')
        assert.ok(forgedMs >= truth - TOLERANCE_MS, `${forgedMs} ms billed for ${truth} ms: ${what}`)
      })
      // Few runs of this seed find the forgeries that faults such as audio-ogg-pages-out-of-order-are-free would allow.
      await fc.assert(costsEnough, { seed: 8, numRuns: runLength(5, 40) })
    })
  }
})
