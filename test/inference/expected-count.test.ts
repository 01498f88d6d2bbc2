import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { countTokens as countCl100k } from 'gpt-tokenizer/encoding/cl100k_base'
import { countTokens as countO200k } from 'gpt-tokenizer/encoding/o200k_base'
import { corpus } from '../../bench/token-corpus.ts'
import { streamedUsage, wholeUsage, expectedCount } from '../../src/inference/metering/usage-bounds.ts'
import type { Job, StreamRelay } from '../../src/engines/job.ts'
import { noUsage } from '../../src/billing/rating/rating.ts'
import { textTokens } from '../../src/shared/tokens/token-estimate.ts'
import { doubtfulCounts } from '../../src/operate/telemetry/doubtful-counts.ts'

const tokenizers = { cl100k_base: countCl100k, o200k_base: countO200k }
const longEnough = (text: string): string => text.repeat(Math.ceil(4000 / text.length))

describe('the tokens that an engine should count', () => {
  for (const [name, count] of Object.entries(tokenizers)) {
    it(`include what ${name} counts, whether or not the catalog names it`, () => {
      for (const [kind, sample] of Object.entries(corpus)) {
        // A tokenizer that spells out bytes, under a table for known scripts: the one text that is beyond belief.
        if (kind === 'rare scripts') continue
        const text = longEnough(sample)
        for (const tokenizer of [name, undefined]) {
          const { least, most } = expectedCount(textTokens(text, tokenizer), 1)
          const tokens = count(text)
          assert.ok(least <= tokens && tokens <= most, `${kind}: ${tokens} is not between ${least} and ${most}`)
        }
      }
    })
  }

  it('do not include the characters of ordinary text', () => {
    for (const kind of ['English prose', 'English questions', 'German', 'French and Spanish', 'code: TypeScript']) {
      const text = longEnough(corpus[kind] ?? assert.fail(kind))
      assert.ok(text.length > expectedCount(textTokens(text, undefined), 1).most, kind)
    }
  })

  it('are anything from 0 for a short text, and have room for what is added to each context', () => {
    assert.deepEqual(expectedCount({ charged: 10, likely: 5 }, 3, 7), { least: 0, most: 41 })
    assert.equal(expectedCount({ charged: 600, likely: 199 }, 1).least, 0)
    assert.equal(expectedCount({ charged: 600, likely: 200 }, 1).least, 100)
  })
})

describe('the usage of an engine', () => {
  const job = {
    maxInputTokens: 5000,
    maxTokens: 100,
    likelyInputTokens: 300,
    expectedInput: { least: 150, most: 1500 },
  } as Job

  const counted = (inputTokens: number, of: Job = job) =>
    wholeUsage(of, {
      usage: { ...noUsage, inputTokens, cachedInputTokens: 40, outputTokens: 20 },
      outputBytes: () => 80,
      render: () => '',
    })

  it('is billed as counted when it fits the text', () => {
    for (const inputTokens of [150, 1500]) {
      const { usage, isEstimated, contradictedCount } = counted(inputTokens)
      assert.deepEqual([usage.inputTokens, usage.cachedInputTokens, usage.outputTokens], [inputTokens, 40, 20])
      assert.deepEqual([isEstimated, contradictedCount], [false, undefined])
    }
  })

  it('is billed as counted when it is far more than the text has, up to the contexts of the model', () => {
    for (const inputTokens of [1501, 5000, 5001, 1_000_000]) {
      const { usage, isEstimated, isPastLimit, contradictedCount } = counted(inputTokens)
      const isPossible = inputTokens <= 5000
      assert.deepEqual(
        [usage.inputTokens, usage.cachedInputTokens, usage.outputTokens],
        [isPossible ? inputTokens : 5000, 40, 20],
      )
      assert.deepEqual([isEstimated, isPastLimit, contradictedCount], [!isPossible, !isPossible, inputTokens])
    }
  })

  it('is billed as counted when it is too low: the engine may have read only a part', () => {
    const { usage, isEstimated, contradictedCount } = counted(149)
    assert.deepEqual([usage.inputTokens, isEstimated, contradictedCount], [149, false, 149])
  })

  it('of a part of the input is compared with that part', () => {
    const relay = {
      isPastLimit: () => false,
      reportedUsage: () => ({ ...noUsage, inputTokens: 100, outputTokens: 7 }),
      deltasSinceReport: () => 0,
    } as StreamRelay
    assert.equal(streamedUsage(job, relay, 0.5).contradictedCount, undefined)
    assert.equal(streamedUsage(job, relay, 1).contradictedCount, 100)
  })

  it('is not checked when it cannot be predicted', () => {
    const { usage, contradictedCount } = counted(4999, { ...job, expectedInput: undefined })
    assert.deepEqual([usage.inputTokens, contradictedCount], [4999, undefined])
  })

  it('of a stream is checked in the same way', () => {
    const relay = {
      isPastLimit: () => false,
      reportedUsage: () => ({ ...noUsage, inputTokens: 4000, outputTokens: 7 }),
      deltasSinceReport: () => 0,
    } as StreamRelay
    const { usage, isEstimated, contradictedCount } = streamedUsage(job, relay, 1)
    assert.deepEqual([usage.inputTokens, usage.outputTokens, isEstimated, contradictedCount], [4000, 7, false, 4000])
  })
})

describe('the deployments with doubtful counts', () => {
  const jobOn = (lane: string): Job =>
    ({ deployment: { lane, engine: { kind: 'openai' } }, expectedInput: { least: 1, most: 9 } }) as unknown as Job

  it('are reported once each, and counted', () => {
    const counts = doubtfulCounts()
    assert.deepEqual(
      [counts.add(jobOn('a'), 50), counts.add(jobOn('a'), 60), counts.add(jobOn('b'), 70)],
      [true, false, true],
    )
    const common = { kind: 'openai', least: 1, most: 9 }
    assert.deepEqual(counts.list(), [
      { lane: 'a', answers: 2, counted: 60, ...common },
      { lane: 'b', answers: 1, counted: 70, ...common },
    ])
  })

  it('are limited in number', () => {
    const counts = doubtfulCounts()
    for (let lane = 0; lane < 10_010; lane++) counts.add(jobOn(`lane ${lane}`), 50)
    assert.equal(counts.list().length, 10_000)
    assert.ok(!counts.add(jobOn('one more'), 50))
  })
})
