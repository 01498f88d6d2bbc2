import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Accounts } from '../../src/accounts/accounts.ts'
import { workspaceSessions } from '../../src/accounts/workspace-sessions.ts'
import type { SharedValues } from '../../src/ports/shared-values.ts'
import { openSessions, SESSION_MS } from '../../src/accounts/sessions.ts'

function stage() {
  let now = Date.UTC(2026, 10, 16)
  const clock = { now: () => now, monotonic: () => now }
  const sessions = openSessions<string>(clock)
  return { sessions, pass: (ms: number) => (now += ms) }
}

describe('a session', () => {
  it('is found by its token, and by nothing else, until it ends', () => {
    const { sessions } = stage()
    const { token } = sessions.open('key_1', 'ws')
    assert.equal(sessions.find(token)?.subject, 'key_1')
    assert.equal(sessions.find(`${token}x`), undefined)
    assert.equal(sessions.find(''), undefined)
    sessions.end(token)
    assert.equal(sessions.find(token), undefined)
  })

  it('expires', () => {
    const { sessions, pass } = stage()
    const { token, expiresAt } = sessions.open('key_1', 'ws')
    pass(SESSION_MS - 1)
    assert.equal(sessions.find(token)?.expiresAt, expiresAt)
    pass(1)
    assert.equal(sessions.find(token), undefined)
  })

  it('gives way to newer ones of the same owner, but not of another', () => {
    const { sessions } = stage()
    const others = sessions.open('key_9', 'other')
    const opened = Array.from({ length: 51 }, () => sessions.open('key_1', 'ws'))
    assert.equal(sessions.find(opened[0]?.token ?? ''), undefined)
    assert.ok(sessions.find(opened[1]?.token ?? ''))
    assert.ok(sessions.find(others.token))
  })
})

describe('a link', () => {
  it('signs in once', () => {
    const { sessions } = stage()
    const { secret } = sessions.issueLink('ws', 'ws')
    assert.equal(sessions.find(secret), undefined, 'it is not a session')
    assert.equal(sessions.redeem(secret)?.subject, 'ws')
    assert.equal(sessions.redeem(secret), undefined)
  })

  it('expires', () => {
    const { sessions, pass } = stage()
    const early = sessions.issueLink('ws', 'ws')
    pass(30 * 60_000)
    assert.equal(sessions.redeem(early.secret), undefined)
  })
})

describe('sessions of a workspace at several replicas', () => {
  /** A Redis that a test can switch off. */
  function sharedMap() {
    const stored = new Map<string, string>()
    const it = { isAway: false, stored }
    const reach = <Value>(work: () => Value): Promise<Value> =>
      it.isAway ? Promise.reject(new Error('away')) : Promise.resolve(work())
    const values: SharedValues = {
      put: (key, value) => reach(() => void stored.set(key, value)),
      get: (key) => reach(() => stored.get(key)),
      take: (key) =>
        reach(() => {
          const value = stored.get(key)
          stored.delete(key)
          return value
        }),
      remove: (key) => reach(() => void stored.delete(key)),
    }
    return Object.assign(it, { values })
  }

  const workspace = { id: 'ws_1', name: 'acme' }
  const accounts = {
    callerOf: () => ({ workspace, keyId: 'key_1' }),
    workspaceById: () => workspace,
    workspace: () => workspace,
  } as unknown as Accounts
  const clock = { now: () => 1000, monotonic: () => 0 }

  it('are known to all of them, and end at all of them', async () => {
    const { values, stored } = sharedMap()
    const [one, other] = [workspaceSessions(accounts, clock, values), workspaceSessions(accounts, clock, values)]
    const opened = await one.signInWithKey('weir_key')
    assert.equal((await other.find(opened?.token ?? ''))?.caller.keyId, 'key_1')
    assert.ok(![...stored].flat().some((text) => text.includes(opened?.token ?? '') || text.includes('weir_key')))
    await other.end(opened?.token ?? '')
    assert.equal(await one.find(opened?.token ?? ''), undefined)
  })

  it('begin with a link once, at any of them', async () => {
    const { values } = sharedMap()
    const [one, other] = [workspaceSessions(accounts, clock, values), workspaceSessions(accounts, clock, values)]
    const { secret } = one.issueLink('acme')
    const opened = await other.signInWithLink(secret)
    assert.equal((await one.find(opened?.token ?? ''))?.hasKey, false)
    assert.equal(await one.signInWithLink(secret), undefined)
    assert.equal(await other.signInWithLink(secret), undefined)
  })

  it('give way to newer ones at all of them, and so do links', async () => {
    const { values, stored } = sharedMap()
    const [one, other] = [workspaceSessions(accounts, clock, values), workspaceSessions(accounts, clock, values)]
    const { secret } = one.issueLink('acme')
    const first = await one.signInWithKey('weir_key')
    const second = await one.signInWithKey('weir_key')
    for (let count = 0; count < 49; count += 1) await one.signInWithKey('weir_key')
    for (let count = 0; count < 50; count += 1) one.issueLink('acme')
    for (const replica of [one, other]) {
      assert.equal(await replica.find(first?.token ?? ''), undefined)
      assert.ok(await replica.find(second?.token ?? ''))
      assert.equal(await replica.signInWithLink(secret), undefined)
    }
    assert.equal(stored.size, 100)
  })

  it('go on where they began while Redis is away', async () => {
    const shared = sharedMap()
    const [one, other] = [1, 2].map(() => workspaceSessions(accounts, clock, shared.values))
    const opened = await one!.signInWithKey('weir_key')
    shared.isAway = true
    assert.equal((await one!.find(opened?.token ?? ''))?.caller.keyId, 'key_1')
    assert.equal(await other!.find(opened?.token ?? ''), undefined)
  })
})
