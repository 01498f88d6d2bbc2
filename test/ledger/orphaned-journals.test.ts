import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { settleOrphanedJournal } from '../../src/cli/settled-store.ts'
import { deliverOrphanedJournals } from '../../src/ledger/commands/orphaned-journals.ts'
import { testBooks } from '../support/books.ts'
import { sampleIntent } from '../support/ledger-samples.ts'

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

test('requests that an older version left open in the store are settled with a journal, and then forgotten', async (t) => {
  const books = await testBooks(0)
  t.after(() => books.close())
  const forgotten: string[] = []
  const store = {
    ...books.store,
    earlierIntents: async () => [sampleIntent('open')],
    forgetEarlierIntents: async () => void forgotten.push('requests'),
    forgetJournal: async () => void forgotten.push('journal'),
  }
  const dataDir = mkdtempSync(join(books.dataDir, 'other-'))
  assert.deepEqual(await settleOrphanedJournal(store, dataDir), { rows: 0, interrupted: 1, damaged: 0 })
  assert.equal((await books.store.usageRow('open'))?.outcome, 'interrupted')
  assert.deepEqual(forgotten, ['requests', 'journal'])
})
