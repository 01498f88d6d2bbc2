import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { stringify } from 'yaml'
import { collect, startCli, startNote } from '../support/cli.ts'
import { commandLine } from '../support/command-line.ts'
import { chatStage } from '../support/chat-stage.ts'
import { jsonStage } from '../support/json-stage.ts'
import { scriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry } from '../support/weir.ts'
import { eventually } from '../support/waiting.ts'

const text = 'A weir is a low wall across a river, and it decides how fast the water may go on. '.repeat(20)

const embedder = {
  categories: ['embedding'],
  context_length: 8192,
  max_completion_tokens: undefined,
  default_max_tokens: undefined,
  supported_parameters: ['dimensions'],
  pricing: { input_per_million: '0.02' },
}

/** Counts characters, as infinity does by default. */
function countingCharacters(body: Readonly<Record<string, unknown>>): object {
  const texts = body['input'] as string[]
  const characters = texts.join('').length
  return {
    object: 'list',
    data: texts.map((_, index) => ({ object: 'embedding', index, embedding: [0.5] })),
    usage: { prompt_tokens: characters, total_tokens: characters },
  }
}

interface Answer {
  readonly usage: { readonly prompt_tokens: number }
}

describe('an engine whose template adds a long system prompt', () => {
  it('[M7] is billed as it counts, and the caller sees the same, in every form', async (t) => {
    const { weir } = await chatStage(t, { script: { promptTokens: 5000 } })
    const asked = { model: 'meta/test-8b', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 50 }
    for (const [path, body] of [
      ['/chat/completions', asked],
      ['/chat/completions', { ...asked, stream: true, stream_options: { include_usage: true } }],
      ['/messages', asked],
      ['/messages', { ...asked, stream: true }],
      ['/responses', { model: asked.model, input: 'Hi' }],
    ] as const) {
      const headers = { 'content-type': 'application/json' }
      const response = await weir.call(path, { method: 'POST', headers, body: JSON.stringify(body) })
      assert.match(await response.text(), /"(prompt|input)_tokens":5000\b/)
    }
    for (const row of await weir.ledger()) assert.deepEqual([row.inputTokens, row.estimated], [5000, false])
  })

  it('[M7] is billed for no more than the context of the model', async (t) => {
    const { weir } = await chatStage(t, { script: { promptTokens: 8193 } })
    await (await weir.chat({})).text()
    const [row] = await weir.ledger()
    assert.deepEqual([row?.inputTokens, row?.estimated], [8192, true])
  })
})

describe('an engine with usage: estimated', () => {
  it('[M7] is neither billed nor limited by its counts', async (t) => {
    for (const isStream of [false, true]) {
      const { weir } = await chatStage(t, {
        engine: { usage: 'estimated' },
        script: {
          handle({ body }, response) {
            const usage = { prompt_tokens: 7000, completion_tokens: 3000 }
            const isStreamed = body['stream'] === true
            const content = { content: 'Hello there!' }
            const choice = { index: 0, finish_reason: 'stop', [isStreamed ? 'delta' : 'message']: content }
            const json = JSON.stringify({ choices: [choice], usage })
            response.writeHead(200, { 'content-type': isStreamed ? 'text/event-stream' : 'application/json' })
            response.end(isStreamed ? `data: ${json}\n\ndata: [DONE]\n\n` : json)
          },
        },
      })
      const answer = await (await weir.chat({ max_tokens: 10, stream: isStream })).text()
      assert.match(answer, /Hello there!/)
      assert.match(answer, /"finish_reason":"stop"/)
      const [row] = await weir.ledger()
      assert.equal(row?.estimated, true)
      assert.ok((row?.inputTokens ?? 0) < 50 && (row?.outputTokens ?? 0) <= 10, JSON.stringify(row?.inputTokens))
    }
  })
})

describe('an engine that counts characters', () => {
  it('[M7] is billed by its count, which is flagged, unless the operator or its kind declares that it counts no tokens', async (t) => {
    for (const [engine, isEstimated] of [
      [{ kind: 'openai' }, false],
      [{ kind: 'openai', usage: 'estimated' }, true],
      [{ kind: 'infinity' }, true],
      [{ kind: 'infinity', usage: 'reported' }, false],
    ] as const) {
      const { weir, post, answer } = await jsonStage(t, { model: embedder, engine, config: {} })
      answer(({ body }) => countingCharacters(body))
      const response = await post('/embeddings', { input: text })
      const { usage } = (await response.json()) as Answer
      const [row] = await weir.ledger()
      assert.deepEqual([row?.estimated, row?.inputTokens], [isEstimated, usage.prompt_tokens])
      if (isEstimated) assert.ok(usage.prompt_tokens < text.length / 4, `${usage.prompt_tokens} of ${text.length}`)
      else assert.equal(usage.prompt_tokens, text.length)
      const metrics = await (await weir.admin('GET', '/metrics')).text()
      assert.equal(/^weir_contradicted_counts_total\{model="meta\/test-8b"\} 1$/m.test(metrics), !isEstimated)
    }
  })

  it('[M7] is estimated when it ranks, too', async (t) => {
    for (const [usage, isEstimated] of [
      ['reported', false],
      ['estimated', true],
    ] as const) {
      const model = { ...embedder, categories: ['reranker'], rerank_schema: 'documents', supported_parameters: [] }
      const { weir, post, answer } = await jsonStage(t, { model, engine: { kind: 'infinity', usage }, config: {} })
      answer(() => ({
        results: [{ index: 0, relevance_score: 0.5 }],
        usage: { prompt_tokens: 999, total_tokens: 999 },
      }))
      await (await post('/rerank', { query: 'weir', documents: ['A low wall.'] })).text()
      const [row] = await weir.ledger()
      assert.deepEqual([row?.estimated, row?.inputTokens === 999], [isEstimated, !isEstimated])
    }
  })

  it('is logged once, and weir doctor shows it, with the parameters that an engine does not accept', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-doubts-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const engine = await scriptedEngine()
    t.after(() => engine.close())
    engine.script = {
      handle({ body }, response) {
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(countingCharacters(body)))
      },
    }
    const serverless = { engine: { kind: 'llamacpp', urls: [engine.url], model: 'engine-name' } }
    const file = join(folder, 'weir.yaml')
    const models = [modelEntry([], { ...embedder, serverless })]
    writeFileSync(file, stringify({ server: { port: 0, admin_port: 0, drain_ms: 1000 }, models }))
    const service = startCli(['serve', '--config', file])
    const [stdout, stderr] = [collect(service.stdout), collect(service.stderr)]
    const ended = new Promise((resolve) => service.once('close', resolve))
    t.after(async () => {
      service.kill('SIGTERM')
      await ended
    })
    await eventually('it runs', () => stdout().endsWith('\n') || service.exitCode !== null, 30_000)
    const { api: url, firstKey: key } = startNote(stdout())
    for (let call = 0; call < 3; call++) {
      const response = await fetch(`${url}/embeddings`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
        body: JSON.stringify({ model: 'meta/test-8b', input: text }),
      })
      assert.equal(response.status, 200, await response.text())
    }
    await eventually('it is in the log', () => stderr().includes('contradict'))
    const { findings } = JSON.parse((await commandLine(['doctor', '--json', '--config', file])).stdout) as {
      findings: readonly { name: string; state: string; detail: string }[]
    }
    const counts = findings.filter(({ name }) => name === 'token counts')
    assert.equal(counts.length, 1)
    assert.match(
      counts[0]?.detail ?? '',
      /^meta\/test-8b: the engine \(llamacpp\) counted \d+ input tokens .* in 3 answers/,
    )
    const parameters = findings.filter(({ name }) => name === 'parameters').map(({ detail }) => detail)
    const warning =
      'meta/test-8b: dimensions in supported_parameters is refused, because an engine of kind llamacpp does not take it'
    assert.deepEqual(parameters, [warning])
    const { warnings } = (await commandLine(['check', '--json', '--config', file])).json<{ warnings: string[] }>()
    assert.ok(warnings.includes(warning), warnings.join())
    const lines = stderr().split('\n')
    assert.equal(lines.filter((line) => line.includes('contradict the text')).length, 1)
    const listed = lines.filter((line) => line.includes(warning))
    const {
      lane,
      kind,
      parameters: names,
    } = JSON.parse(listed[0] ?? assert.fail('no warning')) as Record<string, unknown>
    assert.deepEqual([listed.length, lane, kind, names], [1, 'meta/test-8b', 'llamacpp', ['dimensions']])
  })
})
