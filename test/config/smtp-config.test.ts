import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { findMistakes, loadConfig } from '../../src/config.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-smtp-'))
after(() => rmSync(folder, { recursive: true }))
const file = join(folder, 'weir.yaml')
const least = { host: 'smtp.example.com', from: 'invoices@example.com' }

function write(smtp: object): { readonly config: string } {
  writeFileSync(file, JSON.stringify({ smtp }))
  return { config: file }
}
const smtpOf = (smtp: object, environment: NodeJS.ProcessEnv = {}) => loadConfig(write(smtp), environment).smtp

describe('smtp in weir.yaml', () => {
  it('requires encryption, except on this machine', () => {
    const briefs = [
      least,
      { ...least, secure: true },
      { ...least, secure: true, port: 2465 },
      { ...least, host: 'localhost' },
      { ...least, host: '127.0.0.2', port: 25 },
      { ...least, host: '::1' },
      { ...least, host: '10.0.0.1' },
    ].map((smtp) => {
      const { encryption, port } = smtpOf(smtp)!
      return [encryption, port]
    })
    assert.deepEqual(briefs, [
      ['starttls', 587],
      ['tls', 465],
      ['tls', 2465],
      ['none', 587],
      ['none', 25],
      ['none', 587],
      ['starttls', 587],
    ])
    assert.equal(loadConfig({}, {}).smtp, undefined)
  })

  it('takes the password from a variable, which only the service needs', () => {
    const smtp = { ...least, user: 'weir', password_env: 'SMTP_PASSWORD' }
    assert.deepEqual(smtpOf(smtp, { SMTP_PASSWORD: 'secret' })?.login(), { user: 'weir', password: 'secret' })
    assert.equal(smtpOf(least)?.login(), undefined)
    const expected = /smtp\.password_env: the environment variable SMTP_PASSWORD is not set/
    assert.throws(() => smtpOf(smtp)?.login(), expected)
    assert.match(findMistakes(write(smtp), {}).mistakes.join(), expected)
  })

  it('says what to change', () => {
    for (const [smtp, message] of [
      [{ from: 'a@b.example' }, /smtp/],
      [{ ...least, host: 'smtp://host' }, /smtp\.host: .*a host name, such as smtp\.example\.com/],
      [{ ...least, port: 0 }, /smtp\.port/],
      [{ ...least, from: 'Weir <a@b.example>' }, /smtp\.from: must be one e-mail address, such as/],
      [{ ...least, reply_to: 'not-an-address' }, /smtp\.reply_to: must be one e-mail address, such as/],
      [{ ...least, user: 'weir' }, /smtp\.user: needs password_env/],
      [{ ...least, password_env: 'A' }, /smtp\.password_env: needs user/],
      [{ ...least, password: 'secret' }, /smtp/],
    ] as const) {
      assert.match(findMistakes(write(smtp), {}).mistakes.join('\n'), message)
    }
  })
})
