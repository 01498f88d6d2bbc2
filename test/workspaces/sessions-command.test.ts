import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { UsageError } from '../../src/cli/command.ts'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import { ApiError } from '../../src/shared/errors.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { OPERATOR, openSessions } from '../../src/workspaces/sessions/sessions.ts'
import { booksStage } from '../support/books-stage.ts'

describe('weir sessions', () => {
  it('lists who is signed in, in pages, and ends sessions, on record', async (t) => {
    const { books, run, shown, audit } = await booksStage(t)
    const json = async (line: string) =>
      JSON.parse((await run(`sessions ${line} --json`)).stdout) as { data: { id: string }[]; next: string | null }
    assert.equal(await shown('sessions list'), 'No one is signed in.')
    const { id: owner } = await books.workspace('acme')
    let now = systemClock.now()
    const open = openSessions(books.store, { ...systemClock, now: () => (now += 1) }, memoryChanges())
    const tokens: string[] = []
    for (const who of [OPERATOR, owner])
      tokens.push((await open.open({ owner: who, keyHash: null, address: '192.0.2.1' })).token)
    const [ofOperator, ofAcme] = await Promise.all(tokens.map(async (token) => (await open.find(token))?.name ?? ''))
    assert.deepEqual(
      (await json('list')).data.map(({ id }) => id),
      [ofAcme, ofOperator],
    )
    const first = await json('list --limit 1')
    assert.deepEqual([first.data.length, first.next], [1, ofAcme])
    assert.deepEqual(await json(`list --limit 1 --before ${ofAcme}`), {
      object: 'list',
      data: (await json('list')).data.slice(1),
      next: null,
    })
    assert.match(
      await shown('sessions list --limit 1'),
      new RegExp(
        `^ID +WHO +CONSOLE +ROLE +LAST USED +EXPIRES +ADDRESS\n${ofAcme} +one-time link +acme +workspace_admin +TODAY +TODAY +192\\.0\\.2\\.1\n\nThere are more sessions: see them with --before ${ofAcme}\\.$`,
      ),
    )
    assert.equal(await shown(`sessions end ${ofAcme}`), `The session ${ofAcme} of one-time link has ended.`)
    assert.match(await shown('sessions list'), /^ID .*\nconsole_\w+ +operator token or link +operator +operator /)
    assert.deepEqual(await audit(1), [['endSession', ofAcme, null, 'done']])
    const [entry] = await books.store.auditLog({ limit: 1 })
    assert.deepEqual([JSON.parse(entry?.before ?? '').id, entry?.after], [ofAcme, null])
  })

  it('refuses what makes no sense', async (t) => {
    const { failed } = await booksStage(t)
    for (const [line, kind, message] of [
      ['sessions', UsageError, 'choose an action: list or end'],
      ['sessions end', UsageError, 'give the id of the session: weir sessions end ID'],
      ['sessions list x', UsageError, 'unexpected argument "x"; put names with spaces in quotes'],
      ['sessions list --limit 0', UsageError, '--limit must be a whole number from 1 to 10000'],
      ['sessions end none', ApiError, 'There is no session "none".'],
    ] as const) {
      assert.deepEqual(await failed(line), [kind, message], line)
    }
  })
})
