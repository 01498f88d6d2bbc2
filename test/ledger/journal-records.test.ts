import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { serviceTiers } from '../../src/billing/rating/rating.ts'
import { errorTable, type ErrorCode } from '../../src/shared/errors.ts'
import { headText, intentText, recordsIn, rowText } from '../../src/ledger/journal/records.ts'
import type { Intent, Outcome, RequestRow } from '../../src/ledger/rows.ts'
import { anyCharacter } from '../support/any-character.ts'
import { sampleIntent, sampleRow } from '../support/ledger-samples.ts'

const OUTCOMES: readonly Outcome[] = [
  'completed',
  'engine_failed',
  'engine_broke',
  'caller_left',
  'interrupted',
  'withheld',
]

const ERROR_CODES = Object.keys(errorTable) as ErrorCode[]

/** Any text: line ends, quotes and half characters too. */
const text = fc.string({ unit: anyCharacter, maxLength: 30 })
const number = fc.oneof(
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((it) => it + 0),
)

const intent: fc.Arbitrary<Intent> = fc.record({
  requestId: text,
  workspaceId: text,
  keyId: text,
  model: text,
  lane: text,
  endpoint: text,
  priceVersion: number,
  maxTokens: number,
  startedAt: number,
  tier: fc.constantFrom(...serviceTiers),
})

const row: fc.Arbitrary<RequestRow> = fc
  .record({
    inputTokens: number,
    cachedInputTokens: number,
    outputTokens: number,
    images: number,
    audioMs: number,
    estimated: fc.boolean(),
    outcome: fc.constantFrom(...OUTCOMES),
    httpStatus: fc.option(fc.nat()),
    errorCode: fc.option(fc.constantFrom(...ERROR_CODES)),
    amount: fc.bigInt(),
    queueWaitMs: number,
    firstTokenMs: fc.option(number),
    durationMs: number,
    settledAt: number,
  })
  .chain((figures) => intent.map((it) => ({ ...it, ...figures })))

describe('records of the journal', () => {
  it('are read as they were written, many in one frame', () => {
    const record = fc.oneof(
      intent.map((it) => ({ text: intentText(it), record: { kind: 'intent', intent: it } })),
      row.map((it) => ({ text: rowText(it), record: { kind: 'row', row: it } })),
      fc
        .option(fc.record({ segment: fc.nat(), end: fc.nat() }))
        .map((previous) => ({ format: 1 as const, previous }))
        .map((head) => ({ text: headText(head), record: { kind: 'head', head } })),
    )
    fc.assert(
      fc.property(fc.array(record, { minLength: 1, maxLength: 6 }), (records) => {
        assert.deepEqual(
          structuredClone(recordsIn(records.map((it) => it.text).join('\n'))),
          structuredClone(records.map((it) => it.record)),
        )
      }),
    )
  })

  it('keep an amount of any size to the last digit', () => {
    for (const amount of [0n, -1n, 2n ** 63n - 1n, -(2n ** 63n), 9_007_199_254_740_993n, 10n ** 40n]) {
      assert.deepEqual(recordsIn(rowText(sampleRow('a', { amount }))), [
        { kind: 'row', row: sampleRow('a', { amount }) },
      ])
    }
  })

  it('read an invalid number as invalid, never as 0, so that the row is set aside and not billed wrongly', () => {
    for (const wrong of [Number.NaN, Infinity, -Infinity, undefined as unknown as number]) {
      for (const field of ['inputTokens', 'outputTokens', 'durationMs', 'settledAt', 'maxTokens'] as const) {
        const [record] = recordsIn(rowText(sampleRow('a', { [field]: wrong })))
        assert.ok(record?.kind === 'row')
        assert.ok(Number.isNaN(record.row[field]), field)
      }
    }
    const [record] = recordsIn(intentText(sampleIntent('a', { maxTokens: Number.NaN })))
    assert.ok(record?.kind === 'intent' && Number.isNaN(record.intent.maxTokens))
  })

  it('read an invalid amount as it was, since no table accepts it', () => {
    for (const wrong of [1.5, Number.NaN, undefined, null, 'x', '']) {
      const [record] = recordsIn(rowText(sampleRow('a', { amount: wrong as unknown as bigint })))
      assert.ok(record?.kind === 'row')
      assert.equal(typeof record.row.amount, 'string', String(wrong))
      assert.equal(record.row.amount, String(wrong))
    }
  })

  it('keep the position of every value, and later versions append: an update reads the existing journal', () => {
    const usage = { inputTokens: 11, cachedInputTokens: 12, outputTokens: 13, images: 14, audioMs: 15 }
    const intent = '"ws_1","key_1","meta/x","meta/x","/chat/completions",1,10,1'
    const earlier = `["r","a",${intent},11,12,13,14,15,true,"completed","5",0,1,2,3]`
    const row = sampleRow('a', { ...usage, estimated: true, httpStatus: 429, errorCode: 'rate_limit_exceeded' })
    assert.equal(intentText(sampleIntent('a', { tier: 'flex' })), `["i","a",${intent},"flex"]`)
    assert.deepEqual(recordsIn(`["i","a",${intent}]`), [{ kind: 'intent', intent: sampleIntent('a') }])
    assert.equal(rowText({ ...row, tier: 'batch' }), earlier.replace(']', ',429,"rate_limit_exceeded","batch"]'))
    assert.deepEqual(recordsIn(earlier), [{ kind: 'row', row: { ...row, httpStatus: null, errorCode: null } }])
    assert.deepEqual(recordsIn(earlier.replace(']', ',429,"rate_limit_exceeded"]')), [{ kind: 'row', row }])
    assert.equal(headText({ format: 1, previous: { segment: 3, end: 99 } }), '["h",1,{"segment":3,"end":99}]')
  })

  it('of a newer version are refused, with advice', () => {
    const newer = { code: 'ERR_DATA_DIR_NEWER', message: /update Weir/ }
    assert.throws(() => recordsIn('["h",2,null]'), newer)
    assert.throws(() => recordsIn('["x"]'), newer)
    assert.throws(() => recordsIn('["x",1,null]'), newer)
    assert.throws(() => recordsIn(`${headText({ format: 1, previous: null })}\n["correction","a"]`), newer)
  })

  it('of an older version have neither a status nor an error code', () => {
    const older =
      '["r","a","ws_1","key_1","meta/x","meta/x","/chat/completions",1,10,1,0,0,0,0,0,false,"engine_failed","0",0,null,2,3]'
    const row = sampleRow('a', {
      outcome: 'engine_failed',
      amount: 0n,
      firstTokenMs: null,
      httpStatus: null,
      errorCode: null,
    })
    assert.deepEqual(recordsIn(older), [{ kind: 'row', row }])
  })

  it('may be longer in a later version, and the rest is ignored', () => {
    const longer = (line: string): string => line.replace(/\]$/, ',"new",{"a":1}]')
    assert.deepEqual(recordsIn(longer(intentText(sampleIntent('a')))), [{ kind: 'intent', intent: sampleIntent('a') }])
    assert.deepEqual(recordsIn(longer(rowText(sampleRow('a')))), [{ kind: 'row', row: sampleRow('a') }])
  })
})
