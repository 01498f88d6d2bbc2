import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { readRows } from '../../src/store/database.ts'
import { openSqlite } from '../../src/store/sqlite/client.ts'

describe('the SQLite database', () => {
  it('commits a transaction only when it is on the disk, and enforces foreign keys', async (t) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'weir-sqlite-'))
    t.after(() => rmSync(dataDir, { recursive: true, force: true }))
    const database = await openSqlite({ dataDir, exclusive: false })
    t.after(() => database.close())
    const setting = async (name: string) => Object.values((await readRows(database, `PRAGMA ${name}`))[0] ?? {})[0]
    assert.equal(await setting('journal_mode'), 'wal')
    assert.equal(await setting('synchronous'), 2n, 'FULL: a row survives a power cut')
    assert.equal(await setting('foreign_keys'), 1n)
  })
})
