import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { stringify } from 'yaml'
import { chatStage } from '../support/chat-stage.ts'
import { collect, startCli, startNote } from '../support/cli.ts'
import { metricTable } from '../../src/operate/telemetry/metric-table.ts'
import { scriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, OPERATOR_TOKEN, type TestWeir } from '../support/weir.ts'
import { BUSY_MACHINE_MS } from '../support/weir-process.ts'
import { eventually, gate, within } from '../support/waiting.ts'

/** The samples of /metrics: `name{labels}` → value. */
async function samples(weir: TestWeir): Promise<Map<string, number>> {
  const response = await weir.admin('GET', '/metrics')
  assert.equal(response.status, 200)
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
  const found = new Map<string, number>()
  for (const line of (await response.text()).split('\n')) {
    if (line === '' || line.startsWith('# HELP ') || line.startsWith('# TYPE ')) continue
    const sample = /^([a-zA-Z_:][\w:]*)(\{(?:\w+="(?:[^"\\]|\\.)*",?)*\})? (\S+)$/.exec(line)
    assert.ok(sample, `not a sample: ${line}`)
    const value = Number(sample[3])
    assert.ok(!Number.isNaN(value), line)
    found.set(`${sample[1]}${sample[2] ?? ''}`, value)
  }
  return found
}

describe('GET /metrics', () => {
  it('counts requests, rejections, tokens, queue waits and times to the first token', async (t) => {
    const { weir, engine } = await chatStage(t, { script: { promptTokens: 10, cachedTokens: 4 } })
    await Promise.all([1, 2, 3].map(async () => (await weir.chat({})).text()))
    await (await weir.chat({ stream: true })).text()
    await (await weir.chat({ temperature: 9 })).text()
    await (await weir.chat({ model: 'meta/none' })).text()
    await (await weir.call('/nothing')).text()
    await (await weir.call('/models', { key: 'weir_no' })).text()
    engine.script = { refuse: { status: 500, body: {} } }
    await (await weir.chat({})).text()

    const model = 'model="meta/test-8b",lane="meta/test-8b"'
    const expected: Readonly<Record<string, number>> = {
      'weir_requests_total{status="200"}': 4,
      'weir_requests_total{status="400"}': 1,
      'weir_requests_total{status="404"}': 2,
      'weir_requests_total{status="401"}': 1,
      'weir_requests_total{status="502"}': 1,
      'weir_rejections_total{code="invalid_value"}': 1,
      'weir_rejections_total{code="model_not_found"}': 1,
      'weir_rejections_total{code="unknown_url"}': 1,
      'weir_rejections_total{code="invalid_api_key"}': 1,
      'weir_rejections_total{code="upstream_error"}': 1,
      [`weir_tokens_total{${model},kind="input"}`]: 40,
      [`weir_tokens_total{${model},kind="cached_input"}`]: 16,
      [`weir_tokens_total{${model},kind="output"}`]: 12,
      [`weir_outcomes_total{${model},outcome="completed"}`]: 4,
      [`weir_outcomes_total{${model},outcome="engine_failed"}`]: 1,
      [`weir_queue_wait_seconds_count{${model}}`]: 5,
      [`weir_first_token_seconds_count{${model}}`]: 4,
    }
    const hasAll = async (): Promise<boolean> => {
      const found = await samples(weir)
      return Object.keys(expected).every((name) => found.has(name))
    }
    await eventually('everything is counted', hasAll)
    const found = await samples(weir)
    for (const [name, value] of Object.entries(expected)) assert.equal(found.get(name), value, name)
    const infinite = [...found.keys()].find(
      (name) => name.startsWith('weir_queue_wait_seconds_bucket') && name.includes('le="+Inf"'),
    )
    assert.equal(found.get(infinite ?? ''), 5, 'a histogram ends with +Inf')
  })

  it('[Q8] shows what is in flight, committed and queued now, and zero once it is over', async (t) => {
    const { opened, open } = gate()
    const { weir, engine } = await chatStage(t, {
      script: { hold: { afterTokens: 0, until: opened } },
      limits: { max_concurrent_requests: 1 },
    })
    const lane = '{lane="meta/test-8b"}'
    const now = async (): Promise<(number | undefined)[]> => {
      const found = await samples(weir)
      return ['weir_in_flight_requests', 'weir_committed_tokens', 'weir_queue_depth'].map((it) => found.get(it + lane))
    }
    assert.deepEqual(await now(), [0, 0, 0])
    const running = weir.chat({ max_tokens: 100 })
    await engine.arrived(1)
    const waiting = weir.chat({ max_tokens: 100 })
    await eventually('one runs and one waits', async () => (await now())[2] === 1)
    const [inFlight, committed] = await now()
    assert.equal(inFlight, 1)
    assert.ok(committed && committed > 100 && committed < 200, String(committed))
    open()
    await Promise.all([running, waiting].map(async (it) => (await it).text()))
    await eventually('nothing is left', async () => (await now()).join() === '0,0,0')
    const found = await samples(weir)
    const sum = found.get('weir_queue_wait_seconds_sum{model="meta/test-8b",lane="meta/test-8b"}') ?? 0
    assert.ok(sum > 0, 'the wait was measured')
  })

  it('shows the limits of each lane, which engines are up, and what runs', async (t) => {
    const { weir, engine } = await chatStage(t, { limits: { max_concurrent_requests: 7, max_wait_ms: 1500 } })
    const found = await samples(weir)
    const lane = 'lane="meta/test-8b"'
    assert.equal(found.get(`weir_lane_max_concurrent_requests{${lane}}`), 7)
    assert.equal(found.get(`weir_lane_max_wait_seconds{${lane}}`), 1.5)
    assert.equal(found.get(`weir_engine_up{${lane},address="${engine.url}"}`), 1)
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
    assert.equal(found.get(`weir_build_info{version="${version}",node="${process.versions.node}"}`), 1)
  })

  it('writes every metric of the table but the former names, and only with the labels the table names', async (t) => {
    const { weir } = await chatStage(t)
    await (await weir.chat({})).text()
    const text = await (await weir.admin('GET', '/metrics')).text()
    const described = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type])
    assert.deepEqual(
      Object.fromEntries(described),
      Object.fromEntries(
        Object.entries(metricTable).flatMap(([name, { type }]) =>
          name === 'gen_ai_client_token_usage' ? [] : [[name, type]],
        ),
      ),
    )
    for (const [, sample = '', labelText = ''] of text.matchAll(/^(\w+)\{(.*)\} /gm)) {
      const name = sample in metricTable ? sample : sample.replace(/_(bucket|sum|count)$/, '')
      const known: readonly string[] = metricTable[name as keyof typeof metricTable].labels
      const names = [...labelText.matchAll(/(\w+)="/g)].map(([, label = '']) => label).filter((it) => it !== 'le')
      assert.deepEqual(names, known, sample)
    }
  })

  it('shows the free disk, and the result of a reconciliation once there is one', async (t) => {
    const { weir } = await chatStage(t)
    const before = await samples(weir)
    const [free, size] = ['weir_data_disk_free_bytes', 'weir_data_disk_bytes'].map((name) => before.get(name) ?? 0)
    assert.ok(free! > 0 && free! <= size!, `${free} of ${size}`)
    assert.ok(!before.has('weir_reconcile_problems'))
    await (await weir.admin('GET', '/admin/v1/reconcile')).text()
    const after = await samples(weir)
    assert.equal(after.get('weir_reconcile_problems'), 0)
    assert.ok(Math.abs((after.get('weir_reconcile_timestamp_seconds') ?? 0) - Date.now() / 1000) < 3600)
  })

  it('shows the lag of the ledger and the delay of the event loop', async (t) => {
    const { weir } = await chatStage(t)
    const found = await samples(weir)
    for (const name of ['weir_ledger_lag_seconds', 'weir_event_loop_delay_seconds']) {
      const value = found.get(name)
      assert.ok(value !== undefined && value >= 0 && value < 60, name)
    }
    assert.equal(found.get('weir_ledger_healthy'), 1)
  })
})

describe('the log', () => {
  it('has one line per request, and never a prompt, an answer or a key', async (t) => {
    const service = await childService(t)
    const prompt = 'PROMPT-OF-A-CALLER'
    const { engine } = service
    const chat = (body: object, key = service.key) => service.call('/chat/completions', key, body)
    const messages = [{ role: 'user', content: prompt }]

    engine.script = { tokens: ['ANSWER-OF-AN-ENGINE'] }
    assert.equal((await chat({ messages })).status, 200)
    assert.equal((await chat({ messages, stream: true })).status, 200)
    await chat({ messages, temperature: prompt })
    await chat({ messages, [prompt]: 1, user: prompt })
    await chat({ messages: [{ role: prompt, content: prompt }] })
    await service.call('/chat/completions', service.key, `{"messages": "${prompt}`)
    // V8 quotes a few characters around a mistake.
    for (const broken of [
      `{"messages": ${prompt}}`,
      `["${prompt}" ${prompt}]`,
      `{"${prompt}" 1}`,
      prompt,
      `"${prompt}\n"`,
    ]) {
      const { status, text } = await service.call('/chat/completions', service.key, broken)
      assert.equal(status, 400)
      requireNone(text, prompt)
    }
    await service.call('/embeddings', service.key, { model: 'meta/embedder', input: [100_999] })
    await service.call(`/models?scope=${prompt}`, service.key)
    await service.call(`/models?api_key=${service.key}`, service.key)
    await chat({ messages }, `${service.key}x`)
    await chat({ messages }, prompt)
    // Engines quote parts of the request in their error messages.
    for (const status of [400, 401, 404, 422, 429, 500]) {
      engine.script = { refuse: { status, body: { error: { message: `${prompt} ANSWER-OF-AN-ENGINE` } } } }
      await chat({ messages })
    }
    engine.script = { handle: (_call, response) => void response.end(`{"no": "JSON ${prompt}`) }
    await chat({ messages })
    engine.script = { tokens: ['ANSWER-OF-AN-ENGINE', 'x'], breakAfter: { tokens: 1, how: 'reset' } }
    await chat({ messages, stream: true })
    engine.script = { tokens: Array.from({ length: 20 }, () => 'ANSWER-OF-AN-ENGINE ') }
    for (const stream of [false, true]) assert.equal((await chat({ messages, stream, max_tokens: 2 })).status, 200)
    await fetch(`${service.adminUrl}/admin/v1/keys`, { headers: { authorization: `Bearer ${prompt}` } })

    const { stdout, stderr } = await service.stop()
    const lines = stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    const requests = lines.filter(({ msg }) => msg === 'request' || msg === 'request failed')
    assert.equal(requests.length, service.calls())
    const breaches = lines.filter(({ msg }) => String(msg).startsWith('engine went past the limits'))
    assert.equal(breaches.length, 2)
    for (const { level, request_id: id, model, lane, max_tokens: allowed } of breaches) {
      assert.deepEqual([level, model, lane, allowed], [40, 'meta/test-8b', 'meta/test-8b', 2])
      assert.ok(requests.some((line) => line['request_id'] === id))
    }
    const first = requests.find(({ outcome }) => outcome === 'completed')
    for (const name of ['request_id', 'time', 'method', 'path', 'status', 'workspace', 'key_id', 'model', 'lane']) {
      assert.ok(first?.[name] !== undefined, name)
    }
    for (const name of ['queue_wait_ms', 'first_token_ms', 'duration_ms', 'input_tokens', 'output_tokens']) {
      assert.equal(typeof first?.[name], 'number', name)
    }
    for (const secret of [prompt, 'ANSWER-OF-AN-ENGINE', '100999']) requireNone(stderr, secret)
    for (const secret of [service.key, service.firstKey, OPERATOR_TOKEN, 'engine-secret']) {
      assert.ok(!stderr.includes(secret), `${secret} is in the log`)
    }
    // Not even the first key is printed when stdout is not a terminal.
    for (const secret of [prompt, service.firstKey, 'weir_', OPERATOR_TOKEN, 'engine-secret']) {
      assert.ok(!stdout.includes(secret), secret)
    }
  })

  it('warns about a max_wait_ms that clients do not wait for, at the start and on a reload', async (t) => {
    const limits = (seconds: number) => ({ limits: { max_wait_ms: seconds * 1000 } })
    const service = await childService(t, {
      serverless: limits(241),
      dedicated: [
        { workspace: 'acme', ...limits(240) },
        { workspace: 'zenith', ...limits(300) },
      ],
    })
    const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` }
    await fetch(`${service.adminUrl}/admin/v1/catalog/reload`, { method: 'POST', headers })
    const { stderr } = await service.stop()
    const warnings = stderr
      .split('\n')
      .filter((line) => line.includes('max_wait_ms'))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .map(({ level, lane, max_wait_ms }) => [level, lane, max_wait_ms])
    const [warn] = warnings[0] ?? assert.fail('no warning')
    const expected = [
      [warn, 'meta/test-8b', 241_000],
      [warn, 'meta/test-8b@zenith', 300_000],
    ]
    assert.deepEqual(warnings, [...expected, ...expected])
    assert.ok(warn === 'warn' || warn === 40, `unexpected level ${String(warn)}`)
  })
})

/** Not even six characters of the secret in a row are in the text. */
function requireNone(text: string, secret: string): void {
  for (let start = 0; start + 6 <= secret.length; start++) {
    const at = text.indexOf(secret.slice(start, start + 6))
    assert.equal(at, -1, `part of ${secret}: ${text.slice(Math.max(0, at - 200), at + 100)}`)
  }
}

/** Runs `weir serve` in its own process and captures its output. */
async function childService(
  t: TestContext,
  lanes: { readonly serverless?: object; readonly dedicated?: readonly object[] } = {},
) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-log-'))
  const engine = await scriptedEngine()
  const config = join(folder, 'weir.yaml')
  const behind = { engine: { kind: 'openai', urls: [engine.url], model: 'engine-name', api_key_env: 'ENGINE_KEY' } }
  const serverless = { ...behind, ...lanes.serverless }
  writeFileSync(
    config,
    stringify({
      server: { port: 0, admin_port: 0, drain_ms: 1000 },
      log: { level: 'debug' },
      models: [
        modelEntry([], { serverless, dedicated: lanes.dedicated ?? [] }),
        modelEntry([], { id: 'meta/embedder', aliases: [], categories: ['embedding'], serverless: behind }),
      ],
    }),
  )
  const environment = { ENGINE_KEY: 'engine-secret', WEIR_OPERATOR_TOKEN: OPERATOR_TOKEN }
  const child: ChildProcess = startCli(['serve', '--config', config], { environment })
  const stdout = collect(child.stdout)
  const stderr = collect(child.stderr)
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  t.after(async () => {
    child.kill('SIGKILL')
    await engine.close()
    rmSync(folder, { recursive: true })
  })
  await eventually('the service is ready', () => stdout().endsWith('\n') || child.exitCode !== null, BUSY_MACHINE_MS)
  const { api: url, firstKey = assert.fail('no first key') } = startNote(stdout())
  const { adminUrl } = JSON.parse(readFileSync(join(folder, 'data', 'service.json'), 'utf8')) as { adminUrl: string }
  const created = await fetch(`${adminUrl}/admin/v1/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    body: '{"workspace":"default"}',
  })
  const { key } = (await created.json()) as { key: string }
  let calls = 0

  return {
    engine,
    calls: () => calls,
    adminUrl,
    firstKey,
    key,
    async call(path: string, bearer: string, body?: object | string): Promise<{ status: number; text: string }> {
      calls++
      const text = typeof body === 'object' ? JSON.stringify({ model: 'meta/test-8b', ...body }) : body
      const response = await fetch(url + path, {
        headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
        ...(text === undefined ? {} : { method: 'POST', body: text }),
      })
      return { status: response.status, text: await response.text() }
    },
    async stop() {
      child.kill('SIGTERM')
      await within(20_000, 'the service stops', ended)
      return { stdout: stdout(), stderr: stderr() }
    },
  }
}
