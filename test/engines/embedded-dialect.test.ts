import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { RankingInput } from '../../src/engines/dialects/dialect.ts'
import { embedded } from '../../src/engines/dialects/embedded.ts'

const input: RankingInput = {
  model: 'weir/minilm-rerank',
  query: 'What holds water back?',
  documents: ['A weir.'],
  truncate: true,
  maxTokensPerDocument: undefined,
}

/** What the engine host answers is tested by running it (test/models); this is how it is asked. */
describe('ranking by the embedded engine', () => {
  const ranking = embedded.ranking ?? assert.fail('it ranks')

  it('[E6] requests logits, from which both schemas can be computed', () => {
    assert.equal(ranking.request(input).path, '/ranking')
    const output = ranking.response({ rankings: [{ index: 0, logit: 2.5 }], usage: { prompt_tokens: 9 } }, {})
    assert.deepEqual(output, { scores: [{ index: 0, score: 2.5 }], inputTokens: 9 })
    assert.equal(ranking.scale, 'logit')
  })

  it('[E5] uses the schema with max_tokens_per_doc if it is given: the host cuts by its own tokenizer', () => {
    const { path, body } = ranking.request({ ...input, maxTokensPerDocument: 64 })
    assert.equal(path, '/rerank')
    assert.equal((body as { max_tokens_per_doc: number }).max_tokens_per_doc, 64)
    const output = ranking.response({ results: [{ index: 0, relevance_score: 0.5 }], usage: { prompt_tokens: 9 } }, {})
    assert.deepEqual(output, { scores: [{ index: 0, score: 0.5 }], inputTokens: 9, scale: 'probability' })
  })
})
