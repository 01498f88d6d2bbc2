import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { stageConfig } from '../support/chat-stage.ts'
import { commandLine } from '../support/command-line.ts'
import { openIntents } from '../support/open-intents.ts'
import { scriptedEngine } from '../support/scripted-engine.ts'
import { weirProcess } from '../support/weir-process.ts'

describe('commands after kill -9', () => {
  it('see every durable row, even if no service has copied it into the database', async (t) => {
    const engine = await scriptedEngine()
    const weir = await weirProcess(stageConfig([engine.url]))
    t.after(async () => {
      await weir.remove()
      await engine.close()
    })
    const database = new DatabaseSync(join(weir.dataDir, 'weir.db'), { timeout: 5000 })
    // Nothing gets into the database, so the rows are in the journal alone.
    database.exec('BEGIN IMMEDIATE')
    for (const stream of [false, true, false]) await (await weir.chat({ stream })).text()
    weir.signal('SIGKILL')
    await weir.ended()
    database.exec('COMMIT')
    assert.equal(database.prepare('SELECT count(*) AS count FROM ledger').get()?.['count'], 0)
    database.close()

    for (const _ of [1, 2]) {
      const found = await commandLine(['reconcile', '--data', weir.dataDir, '--json'])
      assert.equal(found.code, 0, found.stderr)
      assert.equal((JSON.parse(found.stdout) as { rows: number }).rows, 3)
    }
    await weir.start()
    const rows = await weir.ledger()
    assert.deepEqual(
      rows.map(({ outcome }) => outcome),
      ['completed', 'completed', 'completed'],
    )
    assert.equal(openIntents(weir.dataDir), 0)
  })
})
