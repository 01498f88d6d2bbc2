import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { smallEncoder } from '../../packages/local-models/test/small-encoder.ts'
import { comparisonStage, type ComparisonStage } from './comparison.ts'
import { missing, type EngineProcess } from './engine-process.ts'
import { describeGeneration } from './generation-suite.ts'
import { llamaWeights, startLlama, startLlamaEncoder } from './llamacpp-process.ts'
import { describeEmbeddings } from './embeddings-suite.ts'

interface Slot {
  readonly is_processing: boolean
}

describeGeneration({
  title: "llama.cpp's server",
  skip: missing('llamacpp/bin/python', llamaWeights),
  kind: 'llamacpp',
  base: '/v1',
  model: 'smollm2',
  start: startLlama,
  async isBusy(origin) {
    const slots = (await (await fetch(`${origin}/slots`)).json()) as Slot[]
    return slots.some((slot) => slot.is_processing)
  },
})

const words = ['a', 'weir', 'holds', 'water', 'paris', 'is', 'in', 'france', 'what', '.', '?']

/** The weights are random: the numbers mean nothing, but they are the same both ways. */
async function startEncoder(use: 'embedding' | 'ranking'): Promise<EngineProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-encoder-'))
  const path = join(folder, 'encoder.gguf')
  writeFileSync(path, smallEncoder(words, use))
  const engine = await startLlamaEncoder(use, path)
  return {
    origin: engine.origin,
    async stop() {
      await engine.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

describeEmbeddings({
  title: "llama.cpp's server, embeddings",
  skip: missing('llamacpp/bin/python'),
  kind: 'llamacpp',
  base: '/v1',
  model: 'encoder',
  start: () => startEncoder('embedding'),
})

describe("llama.cpp's server, ranking", { skip: missing('llamacpp/bin/python') }, () => {
  let engine: EngineProcess
  let stage: ComparisonStage
  before(async () => {
    engine = await startEncoder('ranking')
    stage = await comparisonStage({
      kind: 'llamacpp',
      base: '/v1',
      origin: engine.origin,
      model: 'encoder',
      categories: ['reranker'],
    })
  })
  after(async () => {
    await stage?.stop()
    await engine?.stop()
  })

  it('ranks in the same order, and bills what the server counted', async () => {
    const body = { query: 'what is a weir ?', documents: ['paris is in france', 'a weir holds water', 'water'] }
    const response = await stage.through('/rerank', body)
    const ranked = (await response.json()) as { results: { index: number; relevance_score: number }[] }
    const direct = (await (await stage.direct('/rerank', body)).json()) as typeof ranked & {
      usage: { prompt_tokens: number }
    }
    const best = direct.results.toSorted((a, b) => b.relevance_score - a.relevance_score)
    assert.deepEqual(
      ranked.results.map(({ index }) => index),
      best.map(({ index }) => index),
    )
    assert.equal((await stage.rowOf(response)).inputTokens, direct.usage.prompt_tokens)
  })
})
