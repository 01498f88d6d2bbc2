import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import {
  formatPriceList,
  freeRates,
  noUsage,
  parsePriceList,
  rate,
  type PriceList,
  type Rates,
} from '../../src/billing/rating/rating.ts'
import { readUsage } from '../../src/inference/generation/generation-usage.ts'

fc.configureGlobal({ seed: 1 })

function ratesOf(prices: PriceList): Rates {
  const rates = parsePriceList(prices)
  assert.ok(!('badKey' in rates), 'a price is invalid')
  return rates
}

const text = ratesOf({ input_per_million: '0.20', output_per_million: '0.60', cached_input_per_million: '0.05' })
const perToken = fc.bigInt({ min: 0n, max: 10n ** 10n })
const anyRates: fc.Arbitrary<Rates> = fc.record(
  {
    inputPerToken: perToken,
    outputPerToken: perToken,
    cachedInputPerToken: fc.option(perToken),
    perImage: fc.option(fc.bigInt({ min: 0n, max: 10n ** 15n })),
    perAudioMinute: fc.option(fc.bigInt({ min: 0n, max: 10n ** 15n })),
  },
  { noNullPrototype: true },
)
const tokens = fc.nat(10_000_000)

describe('the cost of a request', () => {
  it('[M2] charges input and output tokens at their own rates, to the pico-dollar', () => {
    // A$0.20 and A$0.60 per million are 200,000 and 600,000 pico-AUD per token.
    assert.equal(rate({ ...noUsage, inputTokens: 1 }, text), 200_000n)
    assert.equal(rate({ ...noUsage, outputTokens: 1 }, text), 600_000n)
    assert.equal(rate({ ...noUsage, inputTokens: 1_000_000, outputTokens: 1_000_000 }, text), 800_000_000_000n)
  })

  it('[M5] charges cached input tokens once, at the lower rate, as part of the input tokens', () => {
    assert.equal(rate({ ...noUsage, inputTokens: 10, cachedInputTokens: 4 }, text), 6n * 200_000n + 4n * 50_000n)
    assert.equal(rate({ ...noUsage, inputTokens: 10, cachedInputTokens: 10 }, text), 10n * 50_000n)
  })

  it('[M5] charges cached tokens at the input rate when the model has no cached rate', () => {
    const rates = { ...text, cachedInputPerToken: null }
    assert.equal(rate({ ...noUsage, inputTokens: 10, cachedInputTokens: 4 }, rates), 10n * 200_000n)
  })

  it('[M5] never bills more cached tokens than input tokens, whatever an engine reports', () => {
    fc.assert(
      fc.property(anyRates, tokens, fc.integer({ min: -5, max: 20_000_000 }), (rates, inputTokens, cached) => {
        const amount = rate({ ...noUsage, inputTokens, cachedInputTokens: cached }, rates)
        const cachedRate = rates.cachedInputPerToken ?? rates.inputPerToken
        const [low, high] =
          cachedRate < rates.inputPerToken ? [cachedRate, rates.inputPerToken] : [rates.inputPerToken, cachedRate]
        assert.ok(amount >= BigInt(inputTokens) * low && amount <= BigInt(inputTokens) * high)
      }),
    )
  })

  it('charges per image, and per minute of audio, rounded half up once', () => {
    assert.equal(rate({ ...noUsage, images: 3 }, ratesOf({ per_image: '0.04' })), 120_000_000_000n)
    const audio = ratesOf({ per_audio_minute: '0.01' })
    assert.equal(rate({ ...noUsage, audioMs: 60_000 }, audio), 10_000_000_000n)
    assert.equal(rate({ ...noUsage, audioMs: 1 }, audio), 166_667n)
    assert.equal(rate({ ...noUsage, audioMs: 30_000 }, { ...freeRates, perAudioMinute: 1n }), 1n)
    assert.equal(rate({ ...noUsage, audioMs: 29_999 }, { ...freeRates, perAudioMinute: 1n }), 0n)
  })

  it('is zero without usage, and zero at free rates', () => {
    fc.assert(
      fc.property(anyRates, tokens, tokens, (rates, inputTokens, outputTokens) => {
        assert.equal(rate(noUsage, rates), 0n)
        assert.equal(rate({ ...noUsage, inputTokens, outputTokens, images: 2, audioMs: 5 }, freeRates), 0n)
      }),
    )
  })
})

describe('a price list', () => {
  it('[M2] is written in AUD per million tokens', () => {
    assert.deepEqual(text, {
      inputPerToken: 200_000n,
      outputPerToken: 600_000n,
      cachedInputPerToken: 50_000n,
      perImage: null,
      perAudioMinute: null,
    })
  })

  it('is refused, naming the key, when a price is not a whole number of pico-AUD per token', () => {
    assert.deepEqual(parsePriceList({ input_per_million: '0.0000001' }), { badKey: 'input_per_million' })
    assert.deepEqual(parsePriceList({ input_per_million: '0.20', output_per_million: 'six' }), {
      badKey: 'output_per_million',
    })
    assert.deepEqual(parsePriceList({ per_image: '-1' }), { badKey: 'per_image' })
    assert.equal(ratesOf({ input_per_million: '0.000001' }).inputPerToken, 1n)
    assert.equal(ratesOf({ per_image: '0.000000000001' }).perImage, 1n)
  })

  it('is bounded, and so is reported usage: the most expensive row fits into 64 bits', () => {
    assert.deepEqual(parsePriceList({ input_per_million: '10000.01' }), { badKey: 'input_per_million' })
    assert.deepEqual(parsePriceList({ per_image: '10001' }), { badKey: 'per_image' })
    const highest = ratesOf({ input_per_million: '10000', output_per_million: '10000', per_image: '10000' })
    const most = 100_000_000
    const { usage } = readUsage({ prompt_tokens: most, completion_tokens: most }) ?? assert.fail('usage was not read')
    assert.ok(rate({ ...usage, images: 10 }, highest) < 2n ** 63n)
    assert.equal(readUsage({ prompt_tokens: most + 1, completion_tokens: 1 }), undefined)
    assert.equal(readUsage({ prompt_tokens: 1, completion_tokens: Number.MAX_SAFE_INTEGER }), undefined)
  })

  it('survives being stored and read back, whatever the rates', () => {
    fc.assert(fc.property(anyRates, (rates) => assert.deepEqual(ratesOf(formatPriceList(rates)), rates)))
  })
})
