import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { LedgerRow } from '../../src/ledger/rows.ts'
import { missOf } from '../../src/engines/prefix/miss-cause.ts'
import { promptHasher, type PromptBlocks } from '../../src/engines/prefix/prompt-blocks.ts'
import { cacheUseRecord } from '../../src/operate/telemetry/cache-use.ts'

function promptOf(...texts: string[]): PromptBlocks {
  const hasher = promptHasher()
  for (const text of texts) {
    hasher.beginMessage(false)
    hasher.text(text)
    hasher.endMessage()
  }
  return hasher.result()
}

const hashes = ({ blocks }: PromptBlocks): number[] => blocks.map(({ own }) => own)
const text = Array.from({ length: 800 }, (_, index) => `line ${index}`).join('\n')
const cold = { here: 0, anywhere: 0, isTelling: true }

describe('the cause of a miss', () => {
  it('is none if most of the prompt was cached', () => {
    assert.equal(missOf(promptOf(text), undefined, 0.6, cold), undefined)
  })

  it('is the first use if no prompt was like it', () => {
    assert.deepEqual(missOf(promptOf(text), undefined, 0, cold), { cause: 'first_use' })
    const other = hashes(promptOf(text.replaceAll('line', 'word')))
    assert.deepEqual(missOf(promptOf(text), other, 0, cold), { cause: 'first_use' })
  })

  it('is a change, with its place, if the prompt is otherwise as before', () => {
    const question = 'What is on the last line?'
    const earlier = hashes(promptOf(text, question))
    const changed = `${text.slice(0, 2000)}#${text.slice(2001)}`
    const miss = missOf(promptOf(changed, question), earlier, 0.1, cold)
    assert.ok(miss?.cause === 'prefix_changed')
    assert.equal(miss.change.message, 0)
    assert.ok(miss.change.afterCharacter <= 2000 && miss.change.afterCharacter > 2000 - 300)
  })

  it('is that the engine lost it, if it should have been cached and the engine reports its cache', () => {
    const warm = { here: 0.9, anywhere: 0.9, isTelling: true }
    assert.deepEqual(missOf(promptOf(text), undefined, 0, warm), { cause: 'evicted' })
    assert.equal(missOf(promptOf(text), undefined, 0, { ...warm, isTelling: false }), undefined)
  })

  it('is that it went elsewhere, if another address has it', () => {
    assert.deepEqual(missOf(promptOf(text), undefined, 0, { here: 0.1, anywhere: 0.9, isTelling: true }), {
      cause: 'moved',
    })
  })
})

describe('the record of cache use', () => {
  const row = (keyId: string, cachedInputTokens = 0): LedgerRow =>
    ({ workspaceId: 'ws', keyId, model: 'm', inputTokens: 100, cachedInputTokens, estimated: false }) as LedgerRow

  it('keeps the latest, and no more than 2000', () => {
    const record = cacheUseRecord()
    for (let key = 0; key < 2100; key++) {
      record.add(row(`key_${key}`), undefined, undefined)
      record.add(row('key_0', 50), undefined, undefined)
    }
    const entries = record.entries('ws')
    assert.equal(entries.length, 2000)
    const used = entries.find(({ keyId }) => keyId === 'key_0')
    assert.deepEqual(
      [used?.requests, used?.inputTokens, used?.cachedInputTokens],
      [2101, 210_100, 105_000],
      'one that is used stays',
    )
    assert.deepEqual(record.entries('other'), [])
  })

  it('omits estimates, which show nothing about a cache', () => {
    const record = cacheUseRecord()
    record.add({ ...row('key'), estimated: true }, undefined, undefined)
    assert.deepEqual(record.entries(undefined), [])
  })
})
