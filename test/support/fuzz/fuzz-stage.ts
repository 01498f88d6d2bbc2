import assert from 'node:assert/strict'
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { stringify } from 'yaml'
import { usageQuery } from '../../../src/billing/usage/views.ts'
import { eachPage } from '../../../src/billing/usage/usage-export.ts'
import { engineKinds } from '../../../src/catalog/model.ts'
import type { LedgerRow } from '../../../src/ledger/rows.ts'
import { openSettledStore } from '../../../src/cli/settled-store.ts'
import { openIntents } from '../open-intents.ts'
import { publicDocument } from '../openapi.ts'
import { eventually } from '../waiting.ts'
import { modelEntry } from '../weir.ts'
import { residentBytes, weirProcess, type WeirProcess } from '../weir-process.ts'
import { fuzzEngine, type FuzzEngine } from './fuzz-engine.ts'

/** The service in a process of its own, with a model for every endpoint and every kind of engine. */
export interface FuzzStage {
  readonly weir: WeirProcess
  readonly engine: FuzzEngine
  readonly operatorToken: string
  admin(method: string, path: string, body?: object): Promise<Response>
  /** Changes the limits of every model's queue, while the service runs. */
  changeLimits(changes: object): Promise<Response>
  /** Every row of every workspace. */
  ledger(): Promise<readonly LedgerRow[]>
  /** Remembers what the process uses now, to compare with at the end. */
  measure(): void
  /** No request is queued, running, held or open in the books, and the books add up. */
  assertIdle(): Promise<void>
  /** Nothing is left of all that was sent, and the log has no unexpected failure. */
  assertAtRest(): Promise<void>
  close(): Promise<void>
}

/** Memory that V8 may keep after a burst, on top of what the service used when it was warm. */
const MEMORY_TOLERANCE_BYTES = 96 * 1024 * 1024
/** Connections to engines stay open for the next call. */
const DESCRIPTOR_TOLERANCE = 24

const roomy = { token_budget: 100_000_000, max_concurrent_requests: 64, max_queue_depth: 1000, max_wait_ms: 60_000 }

const parameters = [
  'timestamp_granularities',
  ...new Set(
    Object.values(publicDocument().paths).flatMap(({ post }) =>
      Object.values(post?.requestBody?.content ?? {}).flatMap(({ schema }) => Object.keys(schema.properties ?? {})),
    ),
  ),
]

export async function fuzzStage(): Promise<FuzzStage> {
  const engine = await fuzzEngine()
  const configOf = (limits: object): object => ({
    server: { port: 0, admin_port: 0, drain_ms: 1000 },
    log: { level: 'warn' },
    rate_limit: { requests_per_minute: 100_000_000, unauthenticated_per_minute: 100_000_000 },
    files: { kind: 'local', public_url: 'http://127.0.0.1' },
    models: modelsOf(engine.url, limits),
  })
  const weir = await weirProcess(configOf(roomy))
  const operatorToken = readFileSync(join(weir.dataDir, 'operator-token'), 'utf8').trim()
  let memory = 0
  let descriptors = 0

  const stage: FuzzStage = {
    weir,
    engine,
    operatorToken,
    admin: (method, path, body) =>
      fetch(weir.adminUrl + path, {
        method,
        headers: { authorization: `Bearer ${operatorToken}`, 'content-type': 'application/json' },
        ...(body ? { body: JSON.stringify(body) } : {}),
      }),
    changeLimits(changes) {
      writeFileSync(join(dirname(weir.dataDir), 'weir.yaml'), stringify(configOf({ ...roomy, ...changes })))
      return stage.admin('POST', '/admin/v1/catalog/reload')
    },
    ledger: () => everyRow(weir.dataDir),
    measure() {
      memory = residentBytes(weir.pid)
      descriptors = openDescriptors(weir.pid).length
    },
    assertIdle: () => assertIdle(stage),
    async assertAtRest() {
      await assertIdle(stage)
      await eventually('connections are closed', () => {
        return openDescriptors(weir.pid).length <= descriptors + DESCRIPTOR_TOLERANCE
      })
      assert.ok(
        residentBytes(weir.pid) < memory + MEMORY_TOLERANCE_BYTES,
        `memory grew from ${memory} to ${residentBytes(weir.pid)} bytes`,
      )
      assertNoSurprise(weir.log())
    },
    async close() {
      await weir.remove()
      await engine.close()
    },
  }
  return stage
}

async function assertIdle(stage: FuzzStage): Promise<void> {
  const { weir, engine, admin } = stage
  await eventually('no request is queued or running', async () => (await queueTotals(weir)).every((it) => it === 0))
  await eventually('no engine call runs', () => engine.running === 0)
  await eventually('every intent is settled', () => openIntents(weir.dataDir) === 0)
  await assertNothingHeld(weir, admin)
  const books = (await (await admin('GET', '/admin/v1/reconcile')).json()) as { fits: boolean; problems: object[] }
  assert.deepEqual(books.problems, [])
  assert.equal(books.fits, true)
  const spool = join(weir.dataDir, 'spool')
  await eventually('the spool is empty', () => {
    return readdirSync(spool).length === 0 && !openDescriptors(weir.pid).some((path) => path.startsWith(spool))
  })
}

/** The refusal of a spend limit says whether any running request holds money. */
async function assertNothingHeld(weir: WeirProcess, admin: FuzzStage['admin']): Promise<void> {
  const set = await admin('PATCH', '/admin/v1/workspaces/default', { spend_limit: '0.00' })
  assert.equal(set.status, 200, await set.text())
  await eventually('no money is held', async () => {
    const refused = await weir.chat({ model: 'fuzz/chat' })
    const text = await refused.text()
    assert.equal(refused.status, 402, text)
    return !text.includes('running requests')
  })
  await admin('PATCH', '/admin/v1/workspaces/default', { spend_limit: null })
}

async function queueTotals(weir: WeirProcess): Promise<readonly number[]> {
  const response = await fetch(`${weir.base}/queue/status`, { headers: { authorization: `Bearer ${weir.key}` } })
  const { data } = (await response.json()) as { data: Readonly<Record<string, number>>[] }
  return data.flatMap((lane) => [lane['in_flight_requests'], lane['committed_tokens'], lane['queue_depth']].map(Number))
}

/** Lines that say an error of the program: engines and callers must not be able to cause one. */
const PROGRAM_ERROR = /TypeError|ReferenceError|SyntaxError|AssertionError|Cannot |is not |undefined|null/

function assertNoSurprise(log: string): void {
  const lines = log.split('\n').filter((line) => line !== '')
  const surprises = lines.filter((line) => {
    if (!line.startsWith('{')) return true
    const { msg, reason, err, status, code } = JSON.parse(line) as {
      msg: string
      reason?: string
      status?: number
      code?: string
      err?: { type: string; message: string }
    }
    if (status === 500 || code === 'internal_error' || msg === 'operator request failed') return true
    return PROGRAM_ERROR.test(`${reason ?? ''} ${err?.type ?? ''} ${err?.message ?? ''}`)
  })
  assert.deepEqual(surprises.slice(0, 5), [], `${surprises.length} unexpected failures in the log`)
}

function openDescriptors(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)]
    } catch {
      return []
    }
  })
}

async function everyRow(dataDir: string): Promise<readonly LedgerRow[]> {
  const store = await openSettledStore({ dataDir })
  const rows: LedgerRow[] = []
  try {
    const workspaces = await store.workspaces()
    for (const { id } of workspaces) {
      for await (const page of eachPage(store, usageQuery(id, {}))) rows.push(...page)
    }
  } finally {
    await store.close()
  }
  return rows
}

function modelsOf(url: string, limits: object): object[] {
  const entry = (id: string, categories: string[], kind: string, changes: object = {}): object =>
    modelEntry([], {
      id,
      aliases: [],
      categories,
      supported_parameters: parameters,
      pricing: {
        input_per_million: '0.20',
        output_per_million: '0.60',
        cached_input_per_million: '0.05',
        per_image: '0.04',
        per_audio_minute: '0.006',
      },
      serverless: {
        engine: {
          kind,
          urls: [`${url}/v1`],
          model: 'engine-name',
          first_byte_timeout_ms: 10_000,
          idle_timeout_ms: 10_000,
        },
        limits,
      },
      ...changes,
    })
  const everything = ['llm', 'embedding', 'reranker', 'image', 'audio']
  return [
    entry('fuzz/chat', ['llm', 'vision'], 'openai'),
    entry('fuzz/embedder', ['embedding'], 'openai'),
    entry('fuzz/reranker', ['reranker'], 'openai', { rerank_schema: 'documents' }),
    entry('fuzz/ranker', ['reranker'], 'nim', { rerank_schema: 'passages' }),
    entry('fuzz/painter', ['image'], 'openai'),
    entry('fuzz/listener', ['audio'], 'openai'),
    ...engineKinds.flatMap((kind) =>
      kind === 'embedded'
        ? []
        : [
            entry(`documents/${kind}`, everything, kind, { rerank_schema: 'documents' }),
            entry(`passages/${kind}`, everything, kind, { rerank_schema: 'passages' }),
          ],
    ),
  ]
}
