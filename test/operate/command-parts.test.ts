import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parse } from 'yaml'
import { parseCatalog } from '../../src/catalog/file.ts'
import { catalogLines, type ExaminedEngine } from '../../src/operate/doctor/doctor-engine-entry.ts'
import {
  contextLengthIn,
  modelsIn,
  recognise,
  type ProbeAnswer,
} from '../../src/operate/doctor/doctor-engine-recognition.ts'
import { keysText } from '../../src/workspaces/keys/commands/keys.ts'
import { plainView } from '../support/terminal.ts'

const look = (json: unknown, changes: Partial<ProbeAnswer> = {}): ProbeAnswer => ({
  status: 200,
  headers: {},
  text: typeof json === 'string' ? json : JSON.stringify(json),
  json: typeof json === 'string' ? undefined : json,
  ...changes,
})
const listed = (owner: string) => look({ data: [{ id: 'm', owned_by: owner }] })
const titled = (title: string) => look({ info: { title, version: '7' } })

describe('a server that the doctor examines', () => {
  it('is recognised by what only its kind answers, the most reliable sign first', () => {
    const cases: readonly (readonly [string, Readonly<Record<string, ProbeAnswer>>, string | undefined])[] = [
      ['litellm', { '/health/liveliness': look("I'm alive!") }, undefined],
      ['nim', { '/v1/metadata': look({ version: '1', modelInfo: [] }) }, '1'],
      ['llamacpp', { '/props': look({ build_info: 'b1', default_generation_settings: {} }) }, 'b1'],
      ['llamacpp_python', { '/openapi.json': titled('🦙 llama.cpp Python API') }, '7'],
      ['infinity', { '/openapi.json': titled('♾️ Infinity') }, '7'],
      ['infinity', { '/models': listed('infinity') }, undefined],
      ['speaches', { '/openapi.json': titled('Speaches') }, '7'],
      ['tei', { '/info': look({ version: '2', model_id: 'm', max_client_batch_size: 32 }) }, '2'],
      ['sglang', { '/get_model_info': look({ model_path: 'm', version: '3' }) }, '3'],
      ['sglang', { '/v1/models': listed('sglang') }, undefined],
      ['ollama', { '/': look('Ollama is running'), '/api/version': look({ version: '0.9' }) }, '0.9'],
      ['localai', { '/': look('<title>LocalAI</title>') }, undefined],
      ['whispercpp', { '/': look('Whisper.cpp Server') }, undefined],
      ['vllm', { '/v1/models': listed('vllm'), '/version': look({ version: '0.8' }) }, '0.8'],
      ['openai', { '/v1/models': listed('else') }, undefined],
      ['openai', { '/models': listed('') }, undefined],
    ]
    for (const [kind, looks, version] of cases) {
      const found = recognise('localhost', looks)
      assert.deepEqual([found?.kind, found?.version], [kind, version])
      assert.match(found?.evidence ?? '', /^GET \//)
    }
    const headers = { 'x-litellm-version': '1.2' }
    const proxy = { '/health/liveliness': look("I'm alive!", { headers }), '/v1/models': listed('vllm') }
    assert.deepEqual([recognise('h', proxy)?.kind, recognise('h', proxy)?.version], ['litellm', '1.2'])
    assert.equal(recognise('api.cohere.com', {})?.kind, 'cohere')
    assert.equal(recognise('api.jina.ai', {})?.evidence, 'the host api.jina.ai')
    assert.equal(recognise('h', {}), undefined)
    assert.equal(recognise('h', { '/': look('Ollama is running', { status: 500 }) }), undefined)
    assert.equal(recognise('h', { '/info': look({ version: '2', model_id: 'm' }) }), undefined)
  })

  it('reports the length of its context, in its list or elsewhere', () => {
    const data = [{ id: 'a', owned_by: 'x', max_model_len: 5 }, { id: 'b', meta: { n_ctx: 6 } }, { id: '' }, 7]
    assert.deepEqual(modelsIn({ data }), [
      { id: 'a', owner: 'x', contextLength: 5 },
      { id: 'b', owner: '', contextLength: 6 },
    ])
    assert.deepEqual(modelsIn({ data: {} }), [])
    assert.equal(contextLengthIn({ '/props': look({ default_generation_settings: { n_ctx: 8 } }) }), 8)
    assert.equal(contextLengthIn({ '/info': look({ max_input_length: 9 }) }), 9)
    assert.equal(contextLengthIn({ '/info': look({ max_input_length: 0 }) }), undefined)
  })

  it('gets lines for the catalog that are correct without changes', () => {
    const can = (...questions: readonly string[]) =>
      questions.map((question) => ({ question, state: 'yes' })) as unknown as ExaminedEngine['findings']
    const engine = {
      kind: 'vllm',
      url: 'http://h/v1',
      model: 'Meta/Llama 3',
      contextLength: 5,
      hasApiKey: false,
    } as const
    const chat = catalogLines({ ...engine, findings: can('chat', 'n', 'logprobs', 'tools', 'json schema') })
    assert.deepEqual((parse(chat) as { models: unknown[] }).models, [
      {
        id: 'meta/Llama-3',
        categories: ['llm'],
        context_length: 5,
        supported_parameters:
          'temperature top_p stop seed n logprobs top_logprobs tools tool_choice response_format'.split(' '),
        pricing: { input_per_million: '0', output_per_million: '0' },
        serverless: { engine: { kind: 'vllm', urls: ['http://h/v1'], model: 'Meta/Llama 3' } },
      },
    ])
    assert.doesNotMatch(chat, /check context_length|environment variable/)
    const other = { ...engine, model: '/models/Qwen 2.gguf', contextLength: undefined, hasApiKey: true }
    const ranking = catalogLines({ ...other, findings: can('rerank', 'embeddings') })
    assert.match(ranking, /^# Set your prices[^]*check context_length[^]*environment variable ENGINE_API_KEY/)
    const [model] = parseCatalog(ranking, 'f', () => 'secret')
    assert.deepEqual(
      [model?.id, model?.categories, model?.contextLength, model?.rerankSchema, model?.serverless?.engine?.apiKey],
      ['local/Qwen-2', ['embedding', 'reranker'], 4096, 'documents', 'secret'],
    )
    const slugs = [
      '/srv/models/Qwen',
      'models/q.GGUF',
      'models/q.gguf',
      'A/B c/d',
      '.hidden/m',
      `${'P'.repeat(70)}/${'n'.repeat(140)}`,
    ]
    assert.deepEqual(
      slugs.map((model) => parseCatalog(catalogLines({ ...engine, model, findings: [] }), 'f', () => undefined)[0]?.id),
      ['local/Qwen', 'models/q', 'local/q', 'b-c/d', 'hidden/m', `${'p'.repeat(64)}/${'n'.repeat(128)}`],
    )
    const unknown = parseCatalog(catalogLines({ ...engine, model: '//', findings: [] }), 'f', () => undefined)
    assert.deepEqual([unknown[0]?.id, unknown[0]?.categories], ['local/model', ['llm']])
  })
})

describe('the list of keys', () => {
  it('shows the last day of a key, and the state of each if all are shown', () => {
    const now = Date.parse('2026-11-15T00:00:00Z')
    const limits = {
      requests_per_minute: null,
      tokens_per_minute: null,
      manage_keys: false,
      spend_per_day: null,
      spend_per_month: null,
      allowed_models: null,
      allowed_endpoints: null,
      allowed_addresses: null,
    }
    const times = { created: '', last_used_at: null, revoked: null }
    const key = { redacted: 'weir_…', workspace: 'w', name: null, ...times, ...limits }
    const data = [
      { ...key, id: 'k1', expires_at: '2026-11-15T00:00:00.000Z' },
      { ...key, id: 'k2', expires_at: '2026-11-15T00:00:00.001Z' },
      { ...key, id: 'k3', expires_at: null, revoked: '2026-11-01T00:00:00Z' },
      { ...key, id: 'k4', expires_at: '2026-12-31T13:00:00Z', last_used_at: '2026-11-02T13:00:00Z' },
    ]
    const list = { object: 'list', data, next: 'k4' } as const
    const all = keysText(list, { isAll: true, now }, plainView(100)).split('\n')
    assert.deepEqual(
      all.slice(1, 5).map((line) =>
        line
          .trim()
          .split(/\s{2,}/)
          .at(-1),
      ),
      ['expired', 'works', 'revoked', 'works'],
    )
    assert.match(all[4] ?? '', / 2026-11-03  2026-12-31  works$/)
    assert.match(all.at(-1) ?? '', /--before k4/)
    const usual = keysText({ ...list, next: null }, { isAll: false, now }, plainView(100))
    assert.match(usual, /see them with --all\.$/)
    assert.doesNotMatch(usual, /--before|STATE/)
  })
})
