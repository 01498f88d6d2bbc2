import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { figure } from './figures.ts'
import { cpuMicroseconds, median } from './measuring.ts'
import { benchModel, startWeir, type WeirProcess } from './weir-process.ts'

/**
 * How long a start takes, from the start of the process until it serves: a first one, which makes the database and stores
 * every price, and later ones, with few models and one key and with many of both. The CPU time says what a start would take on
 * a machine that does nothing else.
 *
 * npm run bench -- start [MODELS KEYS]
 */
const [manyModels, manyKeys] = [1000, 1_000_000].map((usual, index) => Number(process.argv[index + 2] ?? usual)) as [
  number,
  number,
]
const STARTS = 5

const heads = ['first, ms', 'later, least', 'median', 'CPU, least']
console.log(`${'models'.padEnd(10)}${'keys'.padEnd(12)}${heads.map((head) => head.padStart(14)).join('')}`)
for (const [models, keys] of [
  [1, 1],
  [manyModels, manyKeys],
] as const) {
  const limits = { token_budget: 1_000_000, max_concurrent_requests: 32 }
  const url = 'http://127.0.0.1:9/v1'
  const list = Array.from({ length: models }, (_, index) => benchModel(url, limits, `bench/model-${index}`))
  let weir = await startWeir({ models: list })
  const first = weir.readyMs
  const later: number[] = []
  const cpu: number[] = []
  weir = await weir.restarted(() => addKeys(weir, keys))
  try {
    for (let start = 0; start < STARTS; start++) {
      weir = await weir.restarted(() => {})
      later.push(weir.readyMs)
      cpu.push(cpuMicroseconds(weir.pid) / 1000)
    }
  } finally {
    await weir.stop()
  }
  const seconds = later.map((ms) => ms / 1000)
  figure(models === 1 ? 'few' : 'many', { unit: 's', digits: 1 }, seconds)
  const cells = [first, Math.min(...later), median(later), Math.min(...cpu)].map((ms) => ms.toFixed(0).padStart(14))
  console.log(models.toLocaleString('en-AU').padEnd(10) + keys.toLocaleString('en-AU').padEnd(12) + cells.join(''))
}

function addKeys({ dataDir }: WeirProcess, count: number): void {
  const database = new DatabaseSync(join(dataDir, 'weir.db'))
  database.exec('PRAGMA synchronous = OFF; BEGIN')
  const [{ id } = { id: '' }] = database.prepare('SELECT id FROM workspaces').all() as { id: string }[]
  const insert = database.prepare('INSERT INTO api_keys (id, workspace_id, hash, created_at) VALUES (?, ?, ?, ?)')
  for (let key = 1; key < count; key++) {
    insert.run(`key_${key}`, id, createHash('sha256').update(`${key}`).digest('hex'), key)
  }
  database.exec('COMMIT')
  database.close()
}
