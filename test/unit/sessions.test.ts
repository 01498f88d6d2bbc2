import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
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
