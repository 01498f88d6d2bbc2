import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { textTokens } from '../../src/shared/tokens/token-estimate.ts'
import { refusalOf, type StageOptions } from '../support/chat-stage.ts'
import { jsonStage, type JsonStage } from '../support/json-stage.ts'
import type { EngineCallSeen } from '../support/scripted-engine.ts'

const reranker = {
  categories: ['reranker'],
  rerank_schema: 'documents',
  context_length: 100,
  max_completion_tokens: undefined,
  default_max_tokens: undefined,
  supported_parameters: [],
  pricing: { input_per_million: '0.02' },
}

/** Answers like a Cohere-style server, in the order of the input. A document that is a number has that score. */
function byRelevance(call: EngineCallSeen): unknown {
  const documents = call.body['documents'] as string[]
  return {
    results: documents.map((text, index) => ({ index, relevance_score: Number(text) })),
    usage: { prompt_tokens: 7, total_tokens: 7 },
  }
}

/** The same with logits, like NIM. */
function byLogit(call: EngineCallSeen): unknown {
  const passages = call.body['passages'] as { text: string }[]
  return {
    rankings: passages.map(({ text }, index) => ({ index, logit: Number(text) })),
    usage: { prompt_tokens: 7, total_tokens: 7 },
  }
}

/** A model for /rerank. */
async function documentsStage(t: TestContext, options: StageOptions = {}): Promise<JsonStage> {
  const made = await jsonStage(t, { ...options, model: { ...reranker, ...options.model } })
  made.answer(byRelevance)
  return made
}

/** A model for /reranking. */
async function passagesStage(t: TestContext, options: StageOptions = {}): Promise<JsonStage> {
  const model = { ...reranker, rerank_schema: 'passages', ...options.model }
  const made = await jsonStage(t, { engine: { kind: 'nim' }, ...options, model })
  made.answer(byLogit)
  return made
}

interface Results {
  readonly id: string
  readonly results: readonly { readonly index: number; readonly relevance_score: number; readonly document?: unknown }[]
}

interface Rankings {
  readonly rankings: readonly { readonly index: number; readonly logit: number }[]
}

const passages = (...texts: readonly string[]): object[] => texts.map((text) => ({ text }))

describe('POST /rerank', () => {
  it('[E5] answers with the documents best first, scored from 0 to 1', async (t) => {
    const { post, engine, weir } = await documentsStage(t)
    const response = await post('/rerank', { query: 'q', documents: ['0.25', '0.75', '0.5'] })
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('x-queue-wait-ms'), '0')
    const requestId = response.headers.get('x-request-id')
    assert.deepEqual(await response.json(), {
      id: `rerank-${requestId}`,
      model: 'meta/test-8b',
      results: [
        { index: 1, relevance_score: 0.75 },
        { index: 2, relevance_score: 0.5 },
        { index: 0, relevance_score: 0.25 },
      ],
      meta: { api_version: { version: '1' }, billed_units: { search_units: 1 } },
      usage: { prompt_tokens: 7, total_tokens: 7 },
    })
    assert.deepEqual(engine.calls[0]?.body, { model: 'engine-name', query: 'q', documents: ['0.25', '0.75', '0.5'] })
    const [row] = await weir.ledger()
    assert.deepEqual([row?.inputTokens, row?.outputTokens, row?.amount], [7, 0, 140_000n])
  })

  it('[E5] accepts documents as objects, alone or among texts, and returns them on request', async (t) => {
    const { post, engine } = await documentsStage(t)
    const documents = ['0.25', { text: '0.75', title: 'ignored' }]
    const response = await post('/rerank', { query: 'q', documents, return_documents: true })
    const { results } = (await response.json()) as Results
    assert.deepEqual(results, [
      { index: 1, relevance_score: 0.75, document: { text: '0.75' } },
      { index: 0, relevance_score: 0.25, document: { text: '0.25' } },
    ])
    assert.deepEqual(engine.calls[0]?.body['documents'], ['0.25', '0.75'])
  })

  it('[E5] returns the best top_n, or all when there are fewer', async (t) => {
    const { post, engine } = await documentsStage(t)
    const indexes = async (top_n: number | null): Promise<number[]> => {
      const response = await post('/rerank', { query: 'q', documents: ['0.25', '0.75', '0.5'], top_n })
      return ((await response.json()) as Results).results.map(({ index }) => index)
    }
    assert.deepEqual(await indexes(1), [1])
    assert.deepEqual(await indexes(2), [1, 2])
    assert.deepEqual(await indexes(1000), [1, 2, 0])
    assert.deepEqual(await indexes(null), [1, 2, 0])
    // The engine scores all of them, so that each one is billed.
    assert.ok(engine.calls.every(({ body }) => body['top_n'] === undefined))
  })

  it('[E5] converts logits to probabilities, keeps equal scores in order, and clamps scores that are out of bounds', async (t) => {
    const { post, answer } = await documentsStage(t, { engine: { kind: 'llamacpp' } })
    const documents = ['0', '2', '0', '-800', '800']
    const response = await post('/rerank', { query: 'q', documents })
    const { results } = (await response.json()) as Results
    assert.deepEqual(
      results.map(({ index, relevance_score: score }) => [index, score]),
      [
        [4, 1],
        [1, 1 / (1 + Math.exp(-2))],
        [0, 0.5],
        [2, 0.5],
        [3, 0],
      ],
    )
    answer(byRelevance)
    const other = await documentsStage(t)
    const cosines = await other.post('/rerank', { query: 'q', documents: ['-0.5', '0.75'] })
    assert.deepEqual(
      ((await cosines.json()) as Results).results.map(({ relevance_score: score }) => score),
      [0.75, 0],
    )
  })

  it('[E5] treats scores that cannot be probabilities as logits, whatever the kind of server', async (t) => {
    const { post } = await documentsStage(t, { engine: { kind: 'vllm' } })
    const response = await post('/rerank', { query: 'q', documents: ['0.5', '3', '4'] })
    const { results } = (await response.json()) as Results
    assert.deepEqual(
      results.map(({ index, relevance_score: score }) => [index, score]),
      [
        [2, 1 / (1 + Math.exp(-4))],
        [1, 1 / (1 + Math.exp(-3))],
        [0, 1 / (1 + Math.exp(-0.5))],
      ],
    )
  })

  it('[E5] uses the scale that the operator configured', async (t) => {
    const score = async (engine: object): Promise<number | undefined> => {
      const { post } = await documentsStage(t, { engine })
      const response = await post('/rerank', { query: 'q', documents: ['0.5'] })
      return ((await response.json()) as Results).results[0]?.relevance_score
    }
    assert.equal(await score({ kind: 'vllm', scores: 'logit' }), 1 / (1 + Math.exp(-0.5)))
    assert.equal(await score({ kind: 'llamacpp', scores: 'probability' }), 0.5)
  })

  it('[E5] forwards max_tokens_per_doc to an engine that supports it, and truncates the documents for any other', async (t) => {
    const long = 'a weir '.repeat(200)
    const ask = { query: 'q', documents: ['1', long], max_tokens_per_doc: 64, return_documents: true }
    for (const kind of ['vllm', 'cohere']) {
      const { post, engine } = await documentsStage(t, { engine: { kind } })
      await post('/rerank', ask)
      const { max_tokens_per_doc: limit, documents } = engine.calls[0]?.body ?? {}
      assert.deepEqual([limit, documents], [64, ['1', long]], kind)
    }
    const texts: Readonly<Record<string, (body: EngineCallSeen['body']) => unknown>> = {
      openai: (body) => body['documents'],
      llamacpp: (body) => body['documents'],
      localai: (body) => body['documents'],
      jina: (body) => body['documents'],
      sglang: (body) => body['documents'],
      tei: (body) => body['texts'],
      nim: (body) => (body['passages'] as { text: string }[]).map(({ text }) => text),
    }
    for (const [kind, textsOf] of Object.entries(texts)) {
      const { post, engine, answer } = await documentsStage(t, { engine: { kind }, model: { tokenizer: 'llama3' } })
      answer(() => ({}))
      await post('/rerank', ask)
      const { body } = engine.calls[0] ?? assert.fail(kind)
      assert.ok(!('max_tokens_per_doc' in body), kind)
      const [short, cut] = textsOf(body) as [string, string]
      assert.equal(short, '1')
      assert.ok(long.startsWith(cut) && cut.length < long.length, kind)
      const { charged } = textTokens(cut, 'llama3')
      assert.ok(charged <= 64 && charged > 60, `${kind}: ${charged} tokens`)
    }
  })

  it('[E5, M2] charges only the part of a truncated document that is read, and returns the whole document', async (t) => {
    const { post, weir, answer } = await documentsStage(t, { engine: { kind: 'cohere' } })
    const long = 'a weir '.repeat(200)
    answer(() => ({ results: [{ index: 0, relevance_score: 0.5 }] }))
    const ask = { query: 'q', documents: [long], max_tokens_per_doc: 10, return_documents: true }
    const { results } = (await (await post('/rerank', ask)).json()) as Results
    assert.deepEqual(results[0]?.document, { text: long })
    const [row] = await weir.ledger()
    assert.equal(row?.inputTokens, 10 + textTokens('q', undefined).likely)
  })

  it('[E5] accepts 1000 documents, split at the engine’s limit, and no more', async (t) => {
    const { post, answer, engine } = await documentsStage(t, { engine: { kind: 'tei' } })
    answer((call) => (call.body['texts'] as string[]).map((text, index) => ({ index, score: Number(text) })))
    const documents = Array.from({ length: 1000 }, (_, index) => String((index * 7) % 1000))
    const response = await post('/rerank', { query: 'q', documents })
    const { results } = (await response.json()) as Results
    assert.deepEqual(
      results.map(({ index }) => Number(documents[index])),
      Array.from({ length: 1000 }, (_, rank) => 999 - rank),
    )
    assert.equal(engine.calls.length, 32)
    const refusal = await refusalOf(await post('/rerank', { query: 'q', documents: [...documents, '1'] }))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'invalid_value', 'documents'])
  })

  it('[E5] truncates long documents itself when the engine cannot, to the length that the engine reports', async (t) => {
    const { post, engine, weir } = await documentsStage(t, { engine: { kind: 'llamacpp' } })
    const limits = [
      'input is too large to process. increase the physical batch size',
      'input (99 tokens) is too large to process. increase the physical batch size (current batch size: 40)',
    ]
    for (const [position, message] of limits.entries()) {
      engine.script = (call) => {
        const texts = call.body['documents'] as string[]
        const isTooLong = texts.some((text) => textTokens(text, undefined).charged > (position === 0 ? 100 : 40))
        if (isTooLong) return { refuse: { status: 500, body: { error: { code: 500, message, type: 'server_error' } } } }
        const results = texts.map((_, index) => ({ index, relevance_score: index }))
        return { handle: (_call, response) => void response.end(JSON.stringify({ results })) }
      }
      const response = await post('/rerank', { query: 'q', documents: ['1', '2 '.repeat(300)] })
      assert.equal(response.status, 200, await response.text())
      const [whole, cut] = engine.calls.slice(-2).map(({ body }) => body['documents'] as string[])
      assert.deepEqual(whole, ['1', '2 '.repeat(300)])
      assert.equal(cut?.[0], '1', 'a short document stays as it is')
      const tokens = textTokens(cut?.[1] ?? '', undefined).charged
      assert.ok(position === 0 ? tokens > 60 && tokens < 100 : tokens > 10 && tokens < 40, `${tokens} tokens`)
    }
    assert.deepEqual(
      (await weir.ledger()).map(({ outcome }) => outcome),
      ['completed', 'completed'],
    )
    engine.script = { refuse: { status: 500, body: { error: { message: 'input is too large to process' } } } }
    const refusal = await refusalOf(await post('/rerank', { query: 'q', documents: ['1'] }))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'context_length_exceeded', 'documents'])
  })

  it('[E5] truncates long documents instead of refusing them', async (t) => {
    const { post, engine } = await documentsStage(t, { engine: { kind: 'tei' } })
    engine.script = { handle: (_, response) => void response.end('[{"index":0,"score":1}]') }
    const response = await post('/rerank', { query: 'q', documents: ['river '.repeat(400)] })
    assert.equal(response.status, 200)
    assert.equal(engine.calls[0]?.body['truncate'], true)
  })

  it('[E5, E12] refuses a query that leaves no room for a document, before an engine is called', async (t) => {
    const { post, engine } = await documentsStage(t)
    const refusal = await refusalOf(await post('/rerank', { query: 'river '.repeat(400), documents: ['1'] }))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'context_length_exceeded', 'query'])
    assert.match(
      refusal.message,
      /maximum context length is 100 tokens, but the query has about \d+\. Shorten the query/,
    )
    assert.equal(engine.calls.length, 0)
  })
})

describe('POST /reranking', () => {
  it('[E6] answers with the passages best first, with raw logits', async (t) => {
    const { post, engine } = await passagesStage(t)
    const response = await post('/reranking', { query: { text: 'q' }, passages: passages('-7.5', '2.5', '0') })
    assert.equal(response.status, 200)
    assert.deepEqual(await response.json(), {
      rankings: [
        { index: 1, logit: 2.5 },
        { index: 2, logit: 0 },
        { index: 0, logit: -7.5 },
      ],
      usage: { prompt_tokens: 7, total_tokens: 7 },
    })
    assert.equal(engine.calls[0]?.path, '/v1/ranking')
  })

  it('[E6] converts probabilities to logits, finite ones even for 0 and 1', async (t) => {
    const { post, answer } = await passagesStage(t, { engine: { kind: 'vllm' } })
    answer(byRelevance)
    const response = await post('/reranking', { query: { text: 'q' }, passages: passages('0', '0.75', '1') })
    const { rankings } = (await response.json()) as Rankings
    assert.deepEqual(
      rankings.map(({ index }) => index),
      [2, 1, 0],
    )
    assert.equal(rankings[1]?.logit, Math.log(3))
    assert.ok(rankings.every(({ logit }) => Number.isFinite(logit)))
  })

  it('[E6] returns the best top_n, and accepts 512 passages but no more', async (t) => {
    const { post, engine } = await passagesStage(t)
    const all = passages(...Array.from({ length: 512 }, (_, index) => String(index)))
    const response = await post('/reranking', { query: { text: 'q' }, passages: all, top_n: 2 })
    assert.deepEqual(((await response.json()) as Rankings).rankings, [
      { index: 511, logit: 511 },
      { index: 510, logit: 510 },
    ])
    assert.equal(engine.calls.length, 1)
    const more = await post('/reranking', { query: { text: 'q' }, passages: [...all, { text: '0' }] })
    const refusal = await refusalOf(more)
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'invalid_value', 'passages'])
  })

  it('[E6, E12] refuses a passage larger than the context with truncate NONE, and truncates it with END', async (t) => {
    const { post, engine } = await passagesStage(t)
    const body = { query: { text: 'q' }, passages: passages('1', 'river '.repeat(400)) }
    for (const truncate of [undefined, 'NONE']) {
      const refusal = await refusalOf(await post('/reranking', { ...body, truncate }))
      assert.deepEqual(
        [refusal.status, refusal.code, refusal.param],
        [400, 'context_length_exceeded', 'passages[1].text'],
      )
      assert.match(refusal.message, /maximum context length/)
    }
    assert.equal(engine.calls.length, 0)
    engine.script = {
      handle: (_, response) => void response.end('{"rankings":[{"index":0,"logit":1},{"index":1,"logit":0}]}'),
    }
    assert.equal((await post('/reranking', { ...body, truncate: 'END' })).status, 200)
    assert.equal(engine.calls[0]?.body['truncate'], 'END')

    const short = { query: { text: 'q' }, passages: passages('1', 'river '.repeat(40)), truncate: 'NONE' }
    engine.script = { refuse: { status: 400, body: { error: { message: 'maximum context length is 32 tokens' } } } }
    const refusal = await refusalOf(await post('/reranking', short))
    assert.deepEqual([refusal.status, refusal.code], [400, 'context_length_exceeded'])
    assert.equal(engine.calls.length, 2, 'it is not truncated for a second call')
  })
})

describe('the two reranking endpoints', () => {
  it('[C8, C6] each model has exactly one, and the other names it in its error', async (t) => {
    const one = await documentsStage(t)
    const refusal = await refusalOf(await one.post('/reranking', { query: { text: 'q' }, passages: passages('1') }))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'wrong_endpoint', 'model'])
    assert.match(refusal.message, /\/api\/v1\/rerank\./)
    const other = await passagesStage(t)
    const back = await refusalOf(await other.post('/rerank', { query: 'q', documents: ['1'] }))
    assert.deepEqual([back.status, back.code, back.param], [400, 'wrong_endpoint', 'model'])
    assert.match(back.message, /\/api\/v1\/reranking\./)
    assert.equal(one.engine.calls.length + other.engine.calls.length, 0)
  })

  it('[X1] every error of /rerank has a top-level message too, and none of /reranking does', async (t) => {
    const { post, weir } = await documentsStage(t)
    const refused = [
      await post('/rerank', { query: 'q' }),
      await post('/rerank', { model: 'nobody/nothing', query: 'q', documents: ['1'] }),
      await post('/rerank', {}, { body: '{' }),
      await post('/rerank', {}, { headers: { 'content-type': 'text/plain' } }),
      await weir.call('/rerank', { method: 'POST', key: null }),
    ]
    assert.deepEqual(
      refused.map(({ status }) => status),
      [400, 404, 400, 415, 401],
    )
    for (const response of refused) {
      const body = (await response.json()) as { message?: string; error: { message: string } }
      assert.ok(body.error.message)
      assert.equal(body.message, body.error.message)
    }
    const other = await passagesStage(t)
    const body = (await (await other.post('/reranking', {})).json()) as object
    assert.deepEqual(Object.keys(body), ['error'])
  })
})

describe('an invalid rerank request', () => {
  const wrong: readonly [string, string, object, string, string][] = [
    ['no query', '/rerank', { documents: ['1'] }, 'missing_required_parameter', 'query'],
    ['an empty query', '/rerank', { query: '', documents: ['1'] }, 'invalid_value', 'query'],
    ['a query as an object', '/rerank', { query: { text: 'q' }, documents: ['1'] }, 'invalid_type', 'query'],
    ['no documents', '/rerank', { query: 'q', documents: [] }, 'invalid_value', 'documents'],
    ['a number among documents', '/rerank', { query: 'q', documents: ['1', 2] }, 'invalid_type', 'documents[1]'],
    [
      'a document without text',
      '/rerank',
      { query: 'q', documents: [{ title: 'x' }] },
      'missing_required_parameter',
      'documents[0].text',
    ],
    ['top_n 0', '/rerank', { query: 'q', documents: ['1'], top_n: 0 }, 'invalid_value', 'top_n'],
    [
      'return_documents as text',
      '/rerank',
      { query: 'q', documents: ['1'], return_documents: 'yes' },
      'invalid_type',
      'return_documents',
    ],
    [
      'max_tokens_per_doc 0',
      '/rerank',
      { query: 'q', documents: ['1'], max_tokens_per_doc: 0 },
      'invalid_value',
      'max_tokens_per_doc',
    ],
    ['a query as text', '/reranking', { query: 'q', passages: passages('1') }, 'invalid_type', 'query'],
    [
      'a query without text',
      '/reranking',
      { query: {}, passages: passages('1') },
      'missing_required_parameter',
      'query.text',
    ],
    ['passages as texts', '/reranking', { query: { text: 'q' }, passages: ['1'] }, 'invalid_type', 'passages[0]'],
    [
      'truncate START',
      '/reranking',
      { query: { text: 'q' }, passages: passages('1'), truncate: 'START' },
      'invalid_value',
      'truncate',
    ],
  ]
  for (const [what, path, body, code, param] of wrong) {
    it(`[E5, E6] ${what} on ${path}: ${code} (${param})`, async (t) => {
      const { post, engine } = await (path === '/rerank' ? documentsStage(t) : passagesStage(t))
      const refusal = await refusalOf(await post(path, body))
      assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, code, param])
      assert.equal(engine.calls.length, 0)
    })
  }
})

describe('an engine that does not score what was requested', () => {
  const answers: readonly [string, unknown][] = [
    ['a document left out', [{ index: 0, relevance_score: 1 }]],
    ['a document twice', [0, 0].map((index) => ({ index, relevance_score: 1 }))],
    ['one document more', [0, 1, 2].map((index) => ({ index, relevance_score: 1 }))],
    ['an index out of range', [0, 2].map((index) => ({ index, relevance_score: 1 }))],
    ['a negative index', [0, -1].map((index) => ({ index, relevance_score: 1 }))],
    ['a score that is text', [0, 1].map((index) => ({ index, relevance_score: '1' }))],
    ['a score that is missing', [{ index: 0, relevance_score: 1 }, { index: 1 }]],
    ['no list', { 0: 1 }],
  ]
  for (const [what, results] of answers) {
    it(`[E5] ${what}: 502, and no bill`, async (t) => {
      const { post, answer, weir } = await documentsStage(t)
      answer(() => ({ results }))
      const refusal = await refusalOf(await post('/rerank', { query: 'q', documents: ['1', '2'] }))
      assert.deepEqual([refusal.status, refusal.code, refusal.retryAfter], [502, 'upstream_error', '2'])
      const [row] = await weir.ledger()
      assert.deepEqual([row?.outcome, row?.amount], ['engine_failed', 0n])
    })
  }

  it('[E5, E12] reports an input it finds too long with the parameter documents', async (t) => {
    const { post, engine } = await documentsStage(t)
    engine.script = { refuse: { status: 422, body: { error: 'maximum context length exceeded' } } }
    const refusal = await refusalOf(await post('/rerank', { query: 'q', documents: ['1'] }))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'context_length_exceeded', 'documents'])
  })
})
