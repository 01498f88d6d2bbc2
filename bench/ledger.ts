/**
 * What a row costs on its way from the journal into the store, with SQLite and with PostgreSQL: CPU time in the service, which
 * sends batches of 100 rows (500 requests a second) or 1,000, and in PostgreSQL itself. It starts its own PostgreSQL on
 * loopback, with fsync off: a disk takes time, but no CPU time.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LedgerStore } from '../src/ledger/ledger.ts'
import { openStoreHere } from '../src/store/open.ts'
import { sampleRow } from '../test/support/ledger-samples.ts'
import { startPostgres, type PostgresServer } from '../test/support/postgres-server.ts'
import { figure } from './figures.ts'
import { childrenOf, cpuMicroseconds, median } from './measuring.ts'

const ROWS = 20_000
const WARM_UP_ROWS = 20_000
const TIMES = 3

const server = await startPostgres()
const dataDir = mkdtempSync(join(tmpdir(), 'weir-bench-'))
let rows = 0
try {
  const stores = {
    SQLite: await openStoreHere({ dataDir, exclusive: false }),
    PostgreSQL: await openStoreHere({ dataDir, exclusive: false, databaseUrl: await server.createDatabase() }),
  }
  console.log('CPU for a row, median of three:')
  for (const batch of [100, 1000]) {
    for (const [name, store] of Object.entries(stores)) {
      await add(store, batch, WARM_UP_ROWS)
      const each = { service: [] as number[], database: [] as number[] }
      for (let time = 0; time < TIMES; time += 1) {
        const before = { ...process.cpuUsage(), database: databaseMicros(server) }
        await add(store, batch, ROWS)
        const { user, system } = process.cpuUsage(before)
        each.service.push((user + system) / ROWS)
        each.database.push((databaseMicros(server) - before.database) / ROWS)
      }
      figure(`${name}.${batch}.service`, { unit: 'µs', digits: 1 }, each.service)
      if (name === 'PostgreSQL') figure(`${name}.${batch}.database`, { unit: 'µs', digits: 1 }, each.database)
      const inside = name === 'SQLite' ? '' : `, ${median(each.database).toFixed(1)} µs in PostgreSQL itself`
      console.log(`${batch} rows in a batch, ${name}: ${median(each.service).toFixed(1)} µs in the service${inside}`)
    }
  }
  for (const store of Object.values(stores)) await store.close()
} finally {
  await server.remove()
  rmSync(dataDir, { recursive: true, force: true })
}

async function add(store: LedgerStore, batch: number, count: number): Promise<void> {
  for (let added = 0; added < count; added += batch) {
    const content = Array.from({ length: batch }, () => {
      rows += 1
      return sampleRow(`req_${rows.toString().padStart(20, '0')}`, {
        workspaceId: `ws_${rows % 5}`,
        inputTokens: 100 + (rows % 100),
        outputTokens: 50,
        settledAt: 1_795_000_000_000 + rows,
      })
    })
    await store.addRows(content, { segment: 1, offset: rows })
  }
}

/** Of all its processes. */
function databaseMicros({ pid }: PostgresServer): number {
  return childrenOf(pid).reduce((sum, child) => sum + cpuMicroseconds(child), 0)
}
