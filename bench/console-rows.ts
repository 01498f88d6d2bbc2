/**
 * How long every list and report of both consoles takes over a large ledger: a year, forty workspaces, twenty models, two
 * hundred keys.
 *
 * npm run bench -- console-rows [ROWS] [FOLDER]: a million rows by default; 50 million take 20 GB. What is in the folder is kept, and served as
 * it is the next time.
 */
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { consoleCalls } from './console-calls.ts'
import { figure } from './figures.ts'
import { fillLedger } from './large-ledger.ts'
import { benchModel, startWeir, type WeirProcess } from './weir-process.ts'

const rows = Number(process.argv[2] ?? 1_000_000)
const kept = process.argv[3]
const TIMES = 20
const WORKSPACES = 40
const KEYS_OF_EACH = 5
const OPERATOR_TOKEN = 'bench-operator-token-0123456789'

if (kept !== undefined) mkdirSync(kept, { recursive: true })
const isFilled = kept !== undefined && existsSync(join(kept, 'data', 'weir.db'))
const models = Array.from({ length: 20 }, (_, index) => `bench/model-${index}`)
const limits = { token_budget: 1000, max_concurrent_requests: 1 }
const config = {
  models: models.map((id) => benchModel('http://127.0.0.1:9/v1', limits, id)),
  operator_token: OPERATOR_TOKEN,
  seller: { name: 'Bench Pty Ltd', abn: '51 824 753 556', address: '1 Lock Street, Sydney NSW 2000' },
}
let weir = await startWeir(config, { kept })
try {
  if (!isFilled) weir = await filled(weir)
  console.log(`\n${rows.toLocaleString('en-AU')} rows; ms of ${TIMES} calls: first, median, slowest`)
  for (const { name, call } of await consoleCalls(weir, OPERATOR_TOKEN)) {
    const times: number[] = []
    for (let count = 0; count < TIMES; count++) times.push(await call())
    const [first = 0] = times
    times.sort((one, other) => one - other)
    const shown = { first, median: times[TIMES / 2] ?? 0, slowest: times.at(-1) ?? 0 }
    for (const [which, ms] of Object.entries(shown)) figure(`${name}.${which}`, { unit: 'ms', digits: 0 }, [ms])
    const cells = Object.values(shown).map((ms) => ms.toFixed(1).padStart(9))
    console.log(name.padEnd(56) + cells.join(''))
  }
} finally {
  await weir.stop()
}

/** Workspaces, keys and invoices come through the operator's API, the rows and the audit log straight into the database. */
async function filled(empty: WeirProcess): Promise<WeirProcess> {
  const ask = operator(empty)
  const [first] = (await ask<{ data: readonly { id: string; name: string }[] }>('GET', '/workspaces')).data
  if (!first) throw new Error('the service has no workspace')
  const workspaces = [{ ...first, keyIds: await keysOf(ask, first.name) }]
  for (let index = 1; index < WORKSPACES; index++) {
    const { id, name } = await ask<{ id: string; name: string }>('POST', '/workspaces', { name: `workspace-${index}` })
    workspaces.push({ id, name, keyIds: await keysOf(ask, name) })
  }
  const { id: seldomKeyId } = await ask<{ id: string }>('POST', '/keys', { workspace: first.name, name: 'seldom' })
  // Sums are kept by the hour.
  const end = Math.floor(Date.now() / 3_600_000) * 3_600_000
  const full = await empty.restarted(() => fillLedger(empty.dataDir, { rows, workspaces, models, seldomKeyId, end }))
  await issueInvoices(
    operator(full),
    workspaces.map(({ name }) => name),
    end,
  )
  return full
}

async function keysOf(ask: Ask, workspace: string): Promise<readonly string[]> {
  const ids: string[] = []
  for (let index = 0; index < KEYS_OF_EACH; index++) {
    ids.push((await ask<{ id: string }>('POST', '/keys', { workspace, name: `key ${index}` })).id)
  }
  return ids
}

/** Of the months that are over. */
async function issueInvoices(ask: Ask, workspaces: readonly string[], end: number): Promise<void> {
  const [year = 0, month = 0] = new Date(end).toISOString().split('-').map(Number)
  for (let back = 11; back > 0; back--) {
    const period = new Date(Date.UTC(year, month - 1 - back, 1)).toISOString().slice(0, 7)
    for (const workspace of workspaces) await ask('POST', '/invoices', { workspace, period })
  }
}

type Ask = <Answer>(method: string, path: string, body?: object) => Promise<Answer>

function operator({ operator: origin }: WeirProcess): Ask {
  return async (method, path, body) => {
    const headers = { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' }
    const sent = body ? { body: JSON.stringify(body) } : {}
    const response = await fetch(`${origin}/admin/v1${path}`, { method, headers, ...sent })
    if (!response.ok) throw new Error(await response.text())
    return (await response.json()) as never
  }
}
