import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { findMistakes, loadConfig } from '../../src/config.ts'
import { WEBHOOK_SECRET } from '../support/webhook-receiver.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-alerts-'))
const file = join(folder, 'weir.yaml')
after(() => rmSync(folder, { recursive: true, force: true }))

const hook = { name: 'hook', url: 'https://example.com/hook', secret_env: 'HOOK_SECRET' }
const smtp = { host: 'smtp.example.com', from: 'weir@example.com' }

function write(alerts: object, more: object = {}): { readonly config: string } {
  writeFileSync(file, JSON.stringify({ alerts, ...more }))
  return { config: file }
}

describe('alerts in weir.yaml', () => {
  it('are webhooks with secrets from the environment, and e-mails', () => {
    const given = write({ webhooks: [hook], emails: [{ to: 'a@b.example', events: ['engine.down'] }] }, { smtp })
    const { endpoints, spendThresholds } = loadConfig(given, { HOOK_SECRET: WEBHOOK_SECRET }).alerts
    const [webhook, email] = endpoints
    assert.ok(webhook?.kind === 'webhook' && email?.kind === 'email')
    assert.deepEqual(webhook.secret(), Buffer.alloc(32, 7))
    assert.deepEqual([webhook.allowsPrivate, email.name, email.events], [false, 'mailto:a@b.example', ['engine.down']])
    assert.deepEqual(spendThresholds, [50, 80, 100])
    assert.deepEqual(loadConfig({}, {}).alerts.endpoints, [])
  })

  it('need a secret of 24 to 64 bytes', () => {
    const secretOf = (bytes: number) => `whsec_${Buffer.alloc(bytes).toString('base64')}`
    for (const [secret, isRight] of [
      [undefined, false],
      ['secret', false],
      [secretOf(23), false],
      [secretOf(24), true],
      [secretOf(64), true],
      [secretOf(65), false],
      [secretOf(24).replace('whsec_', ''), false],
      [`${secretOf(24)} `, false],
    ] as const) {
      const { mistakes } = findMistakes(write({ webhooks: [hook] }), { HOOK_SECRET: secret })
      assert.equal(mistakes.length, isRight ? 0 : 1, secret)
      if (!isRight)
        assert.match(mistakes.join(), /alerts\.webhooks\[0\]\.secret_env: the environment variable HOOK_SECRET must be/)
    }
  })

  it('are refused with a mistake', () => {
    for (const [alerts, message] of [
      [{ webhooks: [hook, hook] }, /another webhook is called hook/],
      [{ webhooks: [{ ...hook, url: 'ftp://a' }] }, /an http:\/\/ or https:\/\/ address/],
      [{ webhooks: [{ ...hook, url: 'http://a:b' }] }, /is not an address/],
      [{ webhooks: [{ ...hook, name: 'mailto:a' }] }, /a name such as billing/],
      [{ webhooks: [{ ...hook, events: ['key.lost'] }] }, /events/],
      [{ emails: [{ to: 'not-an-address' }] }, /must be one e-mail address/],
      [{ emails: [{ to: 'a@b.example' }, { to: 'a@b.example' }] }, /listed twice/],
      [{ spend_thresholds: [0] }, /spend_thresholds/],
    ] as const) {
      assert.throws(() => loadConfig(write(alerts, { smtp }), {}), message)
    }
    assert.throws(() => loadConfig(write({ emails: [{ to: 'a@b.example' }] }), {}), /needs smtp/)
  })
})
