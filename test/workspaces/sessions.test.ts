import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, it, type TestContext } from 'node:test'
import { openAccounts } from '../../src/workspaces/accounts.ts'
import { openSessions, SESSION_MS } from '../../src/workspaces/sessions/sessions.ts'
import { workspaceSessions } from '../../src/workspaces/sessions/workspace-sessions.ts'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import type { SessionStore } from '../../src/workspaces/sessions/session-store.ts'
import { testBooks } from '../support/books.ts'
import { orderOfChanges } from '../support/order-of-changes.ts'

const ws = { owner: 'ws_1', keyHash: null, address: '::1' }

/** A real store, which counts how often sessions are asked of it, and may be away. */
async function stage(t: TestContext) {
  const books = await testBooks(Date.UTC(2026, 10, 16))
  t.after(() => books.close())
  const clock = { now: () => books.now, monotonic: () => 0 }
  const it = { reads: 0, writes: 0, isAway: false }
  const watched =
    (name: keyof SessionStore, what: 'reads' | 'writes') =>
    (...args: readonly unknown[]) => {
      it[what]++
      if (it.isAway) return Promise.reject(new Error('away'))
      return (books.store[name] as (...all: readonly unknown[]) => Promise<never>)(...args)
    }
  const store = {
    sessionsByHash: watched('sessionsByHash', 'reads'),
    addSession: watched('addSession', 'writes'),
    removeSession: watched('removeSession', 'writes'),
    takeLink: watched('takeLink', 'writes'),
    moveSession: watched('moveSession', 'writes'),
    sessionUsed: watched('sessionUsed', 'writes'),
    sessions: watched('sessions', 'reads'),
  }
  // One feed for all replicas, as Redis is.
  const changes = memoryChanges()
  const replica = () => openSessions(store, clock, changes)
  return Object.assign(it, { books, clock, changes, replica, pass: (ms: number) => (books.now += ms) })
}

describe('a session', () => {
  it('is found only by its token, until it ends', async (t) => {
    const { replica } = await stage(t)
    const sessions = replica()
    const { token } = await sessions.open(ws)
    assert.equal((await sessions.find(token))?.owner, 'ws_1')
    const other = `${token.startsWith('a') ? 'b' : 'a'}${token.slice(1)}`
    for (const wrong of [other, `${token}x`, '']) assert.equal(await sessions.find(wrong), undefined)
    await sessions.end(token)
    assert.equal(await sessions.find(token), undefined)
  })

  it('survives a restart, and its token is not stored', async (t) => {
    const { replica, books } = await stage(t)
    const { token, expiresAt } = await replica().open(ws)
    assert.deepEqual((await replica().find(token))?.expiresAt, expiresAt)
    const stored = JSON.stringify(await books.store.sessionsByHash([token]))
    assert.ok(!stored.includes(token))
    assert.equal((await books.store.sessionsByHash([token])).length, 0, 'it is not stored by its token')
  })

  it('expires', async (t) => {
    const { replica, pass } = await stage(t)
    const sessions = replica()
    const { token, expiresAt } = await sessions.open(ws)
    assert.equal(SESSION_MS, 12 * 3_600_000)
    pass(SESSION_MS - 1)
    assert.equal((await sessions.find(token))?.expiresAt, expiresAt)
    pass(1)
    assert.equal(await sessions.find(token), undefined)
    assert.equal(await replica().find(token), undefined)
  })

  it('is read once and then kept in memory, and a request writes nothing', async (t) => {
    const it = await stage(t)
    const sessions = it.replica()
    const { token } = await sessions.open(ws)
    const { writes } = it
    for (let count = 0; count < 5; count += 1) await sessions.find(token)
    assert.deepEqual([it.reads, it.writes - writes], [1, 0])
    for (const nonsense of ['', 'x', 'a'.repeat(10_000)]) assert.equal(await sessions.find(nonsense), undefined)
    await sessions.end('a'.repeat(43))
    assert.deepEqual([it.reads, it.writes - writes], [2, 0], 'signing out without a session writes nothing')
  })

  it('notes its last use at most every five minutes at each replica', async (t) => {
    const it = await stage(t)
    const [one, other] = [it.replica(), it.replica()]
    const { token } = await one.open(ws)
    const { writes } = it
    const opened = it.books.now
    it.pass(5 * 60_000 - 1)
    await one.find(token)
    assert.equal(it.writes - writes, 0)
    it.pass(1)
    for (let count = 0; count < 3; count += 1) await one.find(token)
    assert.equal(it.writes - writes, 1)
    const [listed] = await other.list({ limit: 9 })
    assert.deepEqual([listed?.startedAt, listed?.usedAt], [opened, opened + 5 * 60_000])
    it.isAway = true
    it.pass(5 * 60_000)
    assert.ok(await one.find(token), 'a use that cannot be noted is no failure')
  })

  it('is listed, and ended by its name at every replica', async (t) => {
    const { replica } = await stage(t)
    const [one, other] = [replica(), replica()]
    const first = await one.open(ws)
    const second = await one.open({ ...ws, owner: 'ws_2' })
    for (const it of [one, other]) assert.ok((await it.find(first.token)) && (await it.find(second.token)))
    const [newest, oldest, ...more] = await other.list({ limit: 9 })
    assert.deepEqual([newest?.owner, oldest?.owner, more.length], ['ws_2', 'ws_1', 0])
    assert.deepEqual(
      (await other.list({ limit: 1, before: newest?.name })).map(({ name }) => name),
      [oldest?.name],
    )
    assert.equal((await other.endByName(oldest?.name ?? ''))?.owner, 'ws_1')
    assert.equal(await other.endByName(oldest?.name ?? ''), undefined)
    assert.deepEqual([await one.find(first.token), (await one.find(second.token))?.owner], [undefined, 'ws_2'])
  })

  it('is ended by newer sessions of the same owner, but not of another', async (t) => {
    const { replica } = await stage(t)
    const sessions = replica()
    const others = await sessions.open({ ...ws, owner: 'ws_2' })
    const opened = []
    for (let count = 0; count < 51; count += 1) {
      opened.push(await sessions.open(ws))
      await sessions.find(opened[0]?.token ?? '')
    }
    assert.equal(await sessions.find(opened[0]?.token ?? ''), undefined)
    assert.ok(await sessions.find(opened[1]?.token ?? ''))
    assert.ok(await sessions.find(others.token))
  })

  it('of the operator ends when the token changes', async (t) => {
    const { books, clock, changes } = await stage(t)
    const withToken = (token: string) =>
      openSessions(books.store, clock, changes, (secret) => createHmac('sha256', token).update(secret).digest('hex'))
    const { token } = await withToken('one').open({ ...ws, owner: 'operator' })
    assert.ok(await withToken('one').find(token))
    assert.equal(await withToken('two').find(token), undefined)
    assert.equal(await openSessions(books.store, clock, changes).find(token), undefined, 'nor is it of a member')
  })
})

describe('a link', () => {
  it('signs in once, at any replica and after a restart', async (t) => {
    const { replica } = await stage(t)
    const { secret } = await replica().issueLink('ws_1')
    assert.equal(await replica().find(secret), undefined, 'it is not a session')
    const owners = await Promise.all([replica().redeem(secret), replica().redeem(secret)])
    assert.deepEqual(
      owners.filter((it) => it),
      ['ws_1'],
    )
    assert.equal(await replica().redeem(secret), undefined)
  })

  it('expires', async (t) => {
    const { replica, pass } = await stage(t)
    const early = await replica().issueLink('ws_1')
    pass(30 * 60_000)
    assert.equal(await replica().redeem(early.secret), undefined)
  })
})

describe('sessions at several replicas', () => {
  it('end at all of them, and are replaced at all of them', async (t) => {
    const { replica } = await stage(t)
    const [one, other] = [replica(), replica()]
    const { token } = await one.open(ws)
    const second = await one.open(ws)
    for (const it of [one, other]) assert.ok((await it.find(token)) && (await it.find(second.token)))
    await other.end(token)
    assert.equal(await one.find(token), undefined)
    for (let count = 0; count < 50; count += 1) await one.open(ws)
    assert.equal(await other.find(second.token), undefined)
  })

  it('change in the store before the change is announced, and at all of them before the call ends', async (t) => {
    const { books, clock } = await stage(t)
    let isFull = false
    const addSession: SessionStore['addSession'] = async (...it) => (await books.store.addSession(...it)) || isFull
    const { store, changes, during } = orderOfChanges({ ...books.store, addSession }, [
      'addSession',
      'moveSession',
      'removeSession',
    ])
    const sessions = openSessions(store, clock, changes)
    const announced = ['announce sessions', 'announced']
    let token = ''
    assert.deepEqual(await during(async () => ({ token } = await sessions.open(ws))), ['addSession'], 'none has it yet')
    assert.deepEqual(await during(() => sessions.move(token, 'ws_2')), ['moveSession', ...announced])
    assert.deepEqual(await during(() => sessions.end(token)), ['removeSession', ...announced])
    assert.deepEqual(await during(() => sessions.end(token)), [])
    isFull = true
    assert.deepEqual(await during(() => sessions.open(ws)), ['addSession', ...announced], 'it ended another one')
    const [newest] = await sessions.list({ limit: 1 })
    assert.deepEqual(await during(() => sessions.endByName(newest!.name)), ['removeSession', ...announced])
    assert.deepEqual(await during(() => sessions.endByName('unknown')), [])
  })

  it('continue while the database is unreachable if they are in use; others are neither accepted nor ended', async (t) => {
    const it = await stage(t)
    const [one, other] = [it.replica(), it.replica()]
    const { token } = await one.open(ws)
    await one.find(token)
    it.isAway = true
    assert.ok(await one.find(token))
    await assert.rejects(Promise.resolve(other.find(token)), /The sessions cannot be looked up now/)
    it.isAway = false
    assert.ok(await other.find(token))
  })
})

describe('a session of a person', () => {
  const ada = { id: 'person_1', issuer: 'https://id', subject: '1', name: 'Ada', email: null }

  it('has the role of the workspace that it is in, and moves only to workspaces of the person', async (t) => {
    const { books, clock, changes } = await stage(t)
    const accounts = await openAccounts(books.store, clock, changes)
    const [acme, other, foreign] = [
      await accounts.createWorkspace('acme'),
      await accounts.createWorkspace('other'),
      await accounts.createWorkspace('foreign'),
    ]
    const sessions = workspaceSessions(accounts, openSessions(books.store, clock, changes))
    const roles = [
      { role: 'member', workspaceId: acme.id },
      { role: 'workspace_admin', workspaceId: other.id },
    ] as const
    const { token, expiresAt } = await sessions.signInPerson(ada, roles, { address: '::1', ms: 1000 })
    const found = async () => {
      const it = await sessions.find(token)
      return it && [it.caller.workspace.name, it.caller.keyId, it.role, it.session.person?.name]
    }
    assert.equal(expiresAt, books.now + 1000)
    assert.deepEqual(await found(), ['acme', 'person_1', 'member', 'Ada'])
    const signedIn = await sessions.find(token)
    assert.ok(signedIn)
    await sessions.move(token, signedIn, 'other')
    assert.deepEqual(await found(), ['other', 'person_1', 'workspace_admin', 'Ada'])
    for (const name of [foreign.name, 'nowhere']) {
      await assert.rejects(sessions.move(token, signedIn, name), /You have no workspace/)
    }
  })

  it('moves; that of a link or a key stays in its workspace', async (t) => {
    const { books, clock, changes } = await stage(t)
    const accounts = await openAccounts(books.store, clock, changes)
    await accounts.createWorkspace('acme')
    await accounts.createWorkspace('other')
    const sessions = workspaceSessions(accounts, openSessions(books.store, clock, changes))
    const { key } = await accounts.createKey('acme')
    const { secret } = await sessions.issueLink('acme')
    for (const opened of [await sessions.signInWithLink(secret, '::1'), await sessions.signInWithKey(key, '::1')]) {
      assert.ok(opened)
      const signedIn = await sessions.find(opened.token)
      assert.ok(signedIn)
      await assert.rejects(sessions.move(opened.token, signedIn, 'other'), /You have no workspace/)
      assert.equal((await sessions.find(opened.token))?.caller.workspace.name, 'acme')
    }
  })

  it('is one of their own sessions, which they can end; those of others they cannot', async (t) => {
    const { books, clock, changes } = await stage(t)
    const accounts = await openAccounts(books.store, clock, changes)
    const { id: workspaceId } = await accounts.createWorkspace('acme')
    const sessions = workspaceSessions(accounts, openSessions(books.store, clock, changes))
    const open = async (person: typeof ada) => {
      const options = { address: '::1', ms: 1000 }
      const { token } = await sessions.signInPerson(person, [{ role: 'member', workspaceId }], options)
      const signedIn = await sessions.find(token)
      assert.ok(signedIn)
      return { token, signedIn }
    }
    const [one, two, bob] = [await open(ada), await open(ada), await open({ ...ada, id: 'person_2', subject: '2' })]
    assert.equal((await sessions.own(one.signedIn)).length, 2)
    await assert.rejects(sessions.endOwn(one.signedIn, bob.signedIn.session.name), /You have no session/)
    await sessions.endOwn(one.signedIn, two.signedIn.session.name)
    assert.deepEqual(
      [!!(await sessions.find(one.token)), !!(await sessions.find(two.token)), !!(await sessions.find(bob.token))],
      [true, false, true],
    )
  })

  it('is not ended by sessions of other members', async (t) => {
    const { replica } = await stage(t)
    const sessions = replica()
    const person = { person: ada, roles: [], ms: 1000 }
    const { token } = await sessions.open({ ...ws, person })
    for (let count = 0; count < 50; count += 1) await sessions.open(ws)
    assert.ok(await sessions.find(token))
    for (let count = 0; count < 50; count += 1) await sessions.open({ ...ws, person })
    assert.equal(await sessions.find(token), undefined, 'but by newer ones of the same person')
  })
})

describe('a session of a member', () => {
  it('ends with its key, at once and permanently', async (t) => {
    const { books, clock, changes } = await stage(t)
    const accounts = await openAccounts(books.store, clock, changes)
    await accounts.createWorkspace('acme')
    const { id, key } = await accounts.createKey('acme')
    const sessions = workspaceSessions(accounts, openSessions(books.store, clock, changes))
    const { token = '' } = (await sessions.signInWithKey(key, '::1')) ?? {}
    assert.deepEqual([(await sessions.find(token))?.caller.keyId, (await sessions.find(token))?.hasKey], [id, true])
    await accounts.revokeKey(id)
    assert.equal(await sessions.find(token), undefined)
    assert.equal(await openSessions(books.store, clock, changes).find(token), undefined, 'it is not stored any more')
  })

  it('that was started with a link has a name of its own for its requests', async (t) => {
    const { books, clock, changes } = await stage(t)
    const accounts = await openAccounts(books.store, clock, changes)
    await accounts.createWorkspace('acme')
    const sessions = workspaceSessions(accounts, openSessions(books.store, clock, changes))
    const { secret } = await sessions.issueLink('acme')
    const { token = '' } = (await sessions.signInWithLink(secret, '::1')) ?? {}
    const found = await sessions.find(token)
    assert.match(found?.caller.keyId ?? '', /^console_[0-9a-f]{8}$/)
    assert.deepEqual([found?.hasKey, found?.session.address], [false, '::1'])
    await assert.rejects(sessions.issueLink('nowhere'), /There is no workspace "nowhere"/)
  })
})
