import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { deliverOrphanedJournals } from '../../src/ledger/commands/orphaned-journals.ts'

test('an unreadable journal is reported, and does not end the workers', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'weir-left-'))
  t.after(() => rmSync(dataDir, { recursive: true }))
  const directory = join(dataDir, 'worker-3')
  mkdirSync(directory)
  writeFileSync(join(directory, 'journal'), 'not a folder')
  const [delivery, ...others] = await deliverOrphanedJournals(dataDir, 'postgres://127.0.0.1:1/nothing', 2)
  assert.deepEqual(others, [])
  assert.equal(delivery?.directory, directory)
  assert.match(delivery && 'failure' in delivery ? delivery.failure : '', /ENOTDIR/)
})
