import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { parse, stringify } from 'yaml'
import { chatStage } from '../support/chat-stage.ts'
import { eventually } from '../support/waiting.ts'
import { OPERATOR_TOKEN, type TestWeir } from '../support/weir.ts'

/** A busy machine may starve Prometheus for a while. */
const PATIENCE_MS = 120_000

interface Alert {
  readonly state: string
  readonly labels: Readonly<Record<string, string>>
}

interface Exemplars {
  readonly exemplars: readonly { readonly labels: { readonly trace_id: string } }[]
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** The alerts as they are deployed, without their waits. */
function promptRules(): object {
  const rules = parse(readFileSync(new URL('../../deploy/prometheus/rules.yaml', import.meta.url), 'utf8')) as {
    readonly groups: readonly { readonly rules: readonly object[] }[]
  }
  const groups = rules.groups.map((group) => ({
    ...group,
    rules: group.rules.map((rule) => ('for' in rule ? { ...rule, for: '0s' } : rule)),
  }))
  return { groups }
}

/** A Prometheus that scrapes the service every second. */
async function watch(t: TestContext, weir: TestWeir): Promise<{ query(path: string): Promise<unknown> }> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-prometheus-'))
  writeFileSync(join(folder, 'rules.yaml'), stringify(promptRules()))
  writeFileSync(
    join(folder, 'prometheus.yaml'),
    stringify({
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      rule_files: ['rules.yaml'],
      scrape_configs: [
        {
          job_name: 'weir',
          authorization: { credentials: OPERATOR_TOKEN },
          static_configs: [{ targets: [new URL(weir.adminUrl).host] }],
        },
      ],
    }),
  )
  const address = `127.0.0.1:${await freePort()}`
  const process = spawn(
    'prometheus',
    [
      `--config.file=${join(folder, 'prometheus.yaml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
      '--enable-feature=exemplar-storage',
    ],
    { stdio: 'ignore' },
  )
  t.after(async () => {
    const ended = once(process, 'exit')
    process.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true, force: true })
  })
  return {
    async query(path) {
      const answered = await fetch(`http://${address}/api/v1/${path}`).catch(() => undefined)
      return answered?.ok ? ((await answered.json()) as { data: unknown }).data : undefined
    },
  }
}

describe('Prometheus beside the service', () => {
  it('scrapes it, and its alert fires while an engine is down, and then clears', async (t) => {
    const { weir, engine } = await chatStage(t, { engine: { health: { interval_ms: 1000 } } })
    await (await weir.chat({})).text()
    const prometheus = await watch(t, weir)
    await eventually(
      'the service is scraped',
      async () => {
        const found = (await prometheus.query('query?query=weir_engine_up')) as { result: unknown[] } | undefined
        return found?.result.length === 1
      },
      PATIENCE_MS,
    )
    const firing = async (): Promise<readonly (readonly [string | undefined, string | undefined])[]> => {
      const found = (await prometheus.query('alerts')) as { alerts: readonly Alert[] } | undefined
      assert.ok(found)
      return found.alerts
        .filter(({ state }) => state === 'firing')
        .map(({ labels }) => [labels['alertname'], labels['address']] as const)
    }
    const down = JSON.stringify([['WeirEngineDown', engine.url]])
    const isDown = async (): Promise<boolean> =>
      JSON.stringify((await firing()).filter(([name]) => name === 'WeirEngineDown')) === down
    assert.equal(await isDown(), false)
    engine.healthStatus = 500
    await eventually('the alert fires', isDown, PATIENCE_MS)
    engine.healthStatus = 200
    await eventually('the alert clears', async () => !(await isDown()), PATIENCE_MS)
  })

  it('finds the trace of a request by an exemplar of its duration', async (t) => {
    const { weir } = await chatStage(t, { config: { tracing: { endpoint: 'http://127.0.0.1:9' } } })
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
    const headers = { 'content-type': 'application/json', traceparent: `00-${trace}-00f067aa0ba902b7-01` }
    await (await weir.chat({ stream: true }, { headers })).text()
    const prometheus = await watch(t, weir)
    for (const name of [
      'weir_first_token_seconds',
      'weir_engine_seconds',
      'gen_ai_server_request_duration_seconds',
      'gen_ai_server_time_to_first_token_seconds',
    ]) {
      const query = new URLSearchParams({ query: `${name}_bucket`, start: '0', end: String(Date.now() / 1000 + 3600) })
      const tracesOf = async (): Promise<readonly string[]> => {
        const found = (await prometheus.query(`query_exemplars?${query.toString()}`)) as
          | readonly Exemplars[]
          | undefined
        return (found ?? []).flatMap(({ exemplars }) => exemplars.map(({ labels }) => labels.trace_id))
      }
      await eventually(`${name} has an exemplar`, async () => (await tracesOf()).length > 0, PATIENCE_MS)
      assert.deepEqual(await tracesOf(), [trace], name)
    }
  })
})
