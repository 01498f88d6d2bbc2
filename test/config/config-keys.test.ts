import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { findMistakes, loadConfig } from '../../src/config.ts'
import { leastRequestMemory } from '../../src/config/config-file.ts'
import { databaseFrom, portFrom, redisFrom, tokenFrom } from '../../src/config/environment-values.ts'
import { isLoopback, isPrivateWay } from '../../src/config/loopback.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-config-keys-'))
after(() => rmSync(folder, { recursive: true }))
const config = join(folder, 'weir.yaml')
writeFileSync(join(folder, 'there'), '{"models":[]}')

/** The keys that mistakes are reported at. */
function keysIn(content: object): readonly string[] {
  writeFileSync(config, JSON.stringify(content))
  const { mistakes } = findMistakes({ config }, { SECRET: `whsec_${Buffer.alloc(24).toString('base64')}` })
  return mistakes.map((mistake) => /weir\.yaml:1: (\S+): /.exec(mistake)?.[1] ?? mistake)
}

const seller = { name: 'Weir', abn: '51 824 753 556' }
const smtp = { host: 'smtp.test', from: 'a@b.example' }
const oidc = {
  issuer: 'https://id.test',
  client_id: 'weir',
  operator_url: 'https://operator.test',
  public_url: 'https://weir.test',
  roles: [{ group: 'staff', role: 'operator' }],
}
const hook = { name: 'hook', url: 'https://a.test', secret_env: 'SECRET' }
const rule = { group: 'g', role: 'member', workspace: 'w' }
const MIB = 2 ** 20

describe('a mistake that no schema describes', () => {
  it('is reported at the key that is wrong', () => {
    const signIn = (changes: object) => ({ sign_in: { oidc: { ...oidc, ...changes } } })
    const rules = (...roles: object[]) => signIn({ roles: [...oidc.roles, ...roles] })
    for (const [key, content] of [
      ['seller.abn', { seller: { ...seller, abn: '51 824 753 557' } }],
      ['catalog', { catalog: 'there', models: [] }],
      ['catalog', { catalog: 'gone' }],
      ['devices', { catalog: 'there', devices: {} }],
      ['audio.max_spool_bytes', { audio: { max_upload_bytes: MIB, max_spool_bytes: 2 * MIB - 1 } }],
      ['server.max_request_memory_bytes', { server: { max_request_memory_bytes: leastRequestMemory(20 * MIB) - 1 } }],
      ['server.tls.cert', { server: { tls: { cert: 'gone', key: 'there' } } }],
      ['server.tls.key', { server: { tls: { cert: 'there', key: 'gone' } } }],
      ['invoice.fonts[1]', { invoice: { fonts: ['there#Bold', 'gone'] } }],
      ['smtp.from', { smtp: { ...smtp, from: 'a' } }],
      ['smtp.reply_to', { smtp: { ...smtp, reply_to: 'a' } }],
      ['smtp.user', { smtp: { ...smtp, user: 'a' } }],
      ['smtp.password_env', { smtp: { ...smtp, password_env: 'A' } }],
      ['sign_in.oidc.issuer', signIn({ issuer: 'http://id.test' })],
      ['sign_in.oidc.public_url', signIn({ public_url: 'http://weir.test' })],
      ['sign_in.oidc.operator_url', signIn({ operator_url: 'http://operator.test' })],
      ['sign_in.oidc.scopes', signIn({ scopes: ['email'] })],
      ['sign_in.oidc.roles[1].workspace', rules({ ...rule, role: 'viewer' })],
      ['sign_in.oidc.roles[1].role', rules({ ...rule, workspace: undefined })],
      ['sign_in.oidc.roles[0].role', signIn({ operator_url: undefined })],
      [
        'sign_in.oidc.roles[1].role',
        { sign_in: { oidc: { ...oidc, public_url: undefined, roles: [...oidc.roles, rule] } } },
      ],
      ['alerts.webhooks[1].name', { alerts: { webhooks: [hook, hook] } }],
      ['alerts.webhooks[1].url', { alerts: { webhooks: [hook, { ...hook, name: 'b', url: 'http://a:b' }] } }],
      ['alerts.emails[0].to', { smtp, alerts: { emails: [{ to: 'a' }] } }],
      ['alerts.emails[1].to', { smtp, alerts: { emails: [{ to: 'a@b.example' }, { to: 'a@b.example' }] } }],
      ['alerts.emails', { alerts: { emails: [{ to: 'a@b.example' }] } }],
      ['files.public_url', { server: { host: '0.0.0.0' }, files: { kind: 'local' } }],
      ['files.public_url', { server: { host: '::' }, files: { kind: 'local' } }],
    ] as const) {
      assert.deepEqual(keysIn(content), [key], key)
    }
  })

  it('is none of these', () => {
    for (const content of [
      { audio: { max_upload_bytes: MIB, max_spool_bytes: 2 * MIB } },
      { server: { max_request_memory_bytes: leastRequestMemory(20 * MIB), tls: { cert: 'there', key: 'there' } } },
      { smtp: { ...smtp, reply_to: 'c@d.example' }, alerts: { webhooks: [hook], emails: [{ to: 'a@b.example' }] } },
      { sign_in: { oidc: { ...oidc, roles: [...oidc.roles, rule], scopes: ['email', 'openid'] } } },
      { files: { kind: 'local' } },
    ]) {
      assert.deepEqual(keysIn(content), [], JSON.stringify(content))
    }
  })

  it('is reported once where the schema refuses the section', () => {
    const tooLarge = { max_upload_bytes: 1, max_spool_bytes: MIB }
    for (const [key, content] of [
      ['audio.max_upload_bytes', { audio: tooLarge }],
      ['server.port', { server: { port: -1, tls: { cert: 'gone', key: 'gone' }, max_request_memory_bytes: 1 } }],
      ['seller.name', { seller: { name: '', abn: 'x' } }],
      ['smtp.port', { smtp: { ...smtp, port: 0, from: 'a' } }],
      ['sign_in.oidc.client_id', { sign_in: { oidc: { ...oidc, client_id: '', issuer: 'http://id.test' } } }],
      ['alerts.spend_thresholds[0]', { alerts: { spend_thresholds: [0], emails: [{ to: 'a' }] } }],
      ['invoice.link_days', { invoice: { link_days: 0, fonts: ['gone'] } }],
    ] as const) {
      assert.deepEqual(keysIn(content), [key], key)
    }
  })
})

describe('the models of a configuration', () => {
  it('are parsed again only when their file has changed', () => {
    const model = { id: 'a/b', categories: ['llm'], context_length: 5 }
    for (const [file, content] of [
      [config, (models: object[]) => ({ models })],
      [join(folder, 'models.yaml'), (models: object[]) => ({ models })],
    ] as const) {
      const write = (...models: object[]) => writeFileSync(file, JSON.stringify(content(models)))
      if (file !== config) writeFileSync(config, JSON.stringify({ catalog: 'models.yaml' }))
      write(model)
      const { catalog } = loadConfig({ config }, {})
      const models = catalog.read()
      assert.deepEqual([models.length, catalog.file, catalog.read() === models], [1, file, true])
      write(model, { ...model, id: 'a/c' })
      assert.equal(catalog.read().length, 2)
      write({ ...model, id: 'none' })
      assert.throws(() => catalog.read(), /models\[0\]\.id/)
    }
  })
})

describe('a value from the environment', () => {
  it('is a port from 0 to 65535', () => {
    assert.deepEqual(
      [undefined, '0', '65535'].map((text) => portFrom(text, '--port')),
      [undefined, 0, 65_535],
    )
    for (const text of ['65536', '-1', '1.5', '', ' ', 'x'])
      assert.throws(() => portFrom(text, '--port'), /^Error: --port: must be a port from 0 to 65535, but is "/)
  })

  it('is a token, a database or a Redis, and is not repeated if it is wrong', () => {
    assert.equal(tokenFrom('x'.repeat(16)), 'x'.repeat(16))
    assert.deepEqual(
      [tokenFrom(undefined), databaseFrom(undefined), redisFrom(undefined)],
      [undefined, undefined, undefined],
    )
    assert.deepEqual([databaseFrom('sqlite'), redisFrom('memory')], [undefined, undefined])
    for (const address of ['postgres://a:b@c/d', 'postgresql://c']) assert.equal(databaseFrom(address), address)
    for (const address of ['redis://a:1', 'rediss://a:1/2']) assert.equal(redisFrom(address), address)
    for (const [read, wrong, name] of [
      [tokenFrom, 'secret'.padEnd(15, 'x'), 'WEIR_OPERATOR_TOKEN'],
      [databaseFrom, 'mysql://secret', 'WEIR_DATABASE_URL'],
      [databaseFrom, 'postgres://secret:x:y/', 'WEIR_DATABASE_URL'],
      [redisFrom, 'http://secret', 'WEIR_REDIS_URL'],
    ] as const) {
      assert.throws(
        () => read(wrong),
        (error: Error) => error.message.startsWith(`${name}: must be `) && !error.message.includes('secret'),
      )
    }
    assert.throws(() => databaseFrom('x', '--database'), /^Error: --database: /)
  })
})

describe('this machine', () => {
  it('is localhost and the addresses of the loopback', () => {
    for (const host of ['localhost', 'LOCALHOST', '127.0.0.0', '127.255.255.255', '::1', '0:0:0:0:0:0:0:1'])
      assert.equal(isLoopback(host), true, host)
    for (const host of ['localhost.test', '126.255.255.255', '128.0.0.0', '::', '::2', '10.0.0.1', ''])
      assert.equal(isLoopback(host), false, host)
  })

  it('needs no encryption, other machines do', () => {
    for (const address of ['https://a.test', 'http://[::1]:80', 'http://127.0.0.1/x', 'http://localhost'])
      assert.equal(isPrivateWay(address), true, address)
    for (const address of ['http://a.test', 'http://[::2]', 'http://10.0.0.1'])
      assert.equal(isPrivateWay(address), false)
  })
})
