import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { findMistakes, loadConfig } from '../../src/config.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-sign-in-'))
after(() => rmSync(folder, { recursive: true }))
const file = join(folder, 'weir.yaml')
const least = {
  issuer: 'https://id.example.com/realms/weir',
  client_id: 'weir',
  operator_url: 'https://operator.example.com/',
  public_url: 'https://weir.example.com',
  roles: [{ group: 'staff', role: 'operator' }],
}

function write(oidc: object): { readonly config: string } {
  writeFileSync(file, JSON.stringify({ sign_in: { oidc } }))
  return { config: file }
}
const signInOf = (oidc: object, environment: NodeJS.ProcessEnv = {}) => loadConfig(write(oidc), environment).signIn

describe('sign_in in weir.yaml', () => {
  it('has defaults, and addresses only of consoles that someone has a role in', () => {
    const { clientSecret, ...signIn } = signInOf(least)!
    assert.equal(clientSecret(), undefined)
    assert.deepEqual(signIn, {
      issuer: 'https://id.example.com/realms/weir',
      clientId: 'weir',
      name: 'id.example.com',
      scopes: ['openid', 'profile', 'email'],
      publicUrl: undefined,
      operatorUrl: 'https://operator.example.com',
      groupsClaim: 'groups',
      nameClaim: 'name',
      sessionMs: 8 * 3_600_000,
      roles: [{ group: 'staff', role: 'operator', workspace: undefined }],
    })
    const member = { group: 'acme', role: 'member', workspace: 'acme' }
    const { publicUrl, operatorUrl } = signInOf({ ...least, roles: [member] })!
    assert.deepEqual([publicUrl, operatorUrl], ['https://weir.example.com', undefined])
    const both = signInOf({ ...least, roles: [...least.roles, member] })!
    assert.deepEqual([both.publicUrl, both.operatorUrl], ['https://weir.example.com', 'https://operator.example.com'])
    assert.equal(loadConfig({}, {}).signIn, undefined)
    const { settings } = loadConfig(write({ ...least, roles: [...least.roles, member] }))
    assert.deepEqual(settings.find(({ key }) => key === 'sign_in.oidc.roles')?.value, [
      'staff: operator',
      'acme: member of acme',
    ])
  })

  it('takes every field as it is given', () => {
    const given = {
      name: 'Example ID',
      scopes: ['openid', 'groups'],
      groups_claim: 'memberOf',
      name_claim: 'nickname',
      session_hours: 3,
    }
    const { name, scopes, groupsClaim, nameClaim, sessionMs } = signInOf({ ...least, ...given })!
    assert.deepEqual(
      [name, scopes, groupsClaim, nameClaim, sessionMs],
      ['Example ID', given.scopes, 'memberOf', 'nickname', 10_800_000],
    )
  })

  it('takes the secret from a variable, which only the service needs', () => {
    const oidc = { ...least, client_secret_env: 'OIDC_SECRET' }
    assert.equal(signInOf(oidc, { OIDC_SECRET: 'secret' })?.clientSecret(), 'secret')
    const expected = /sign_in\.oidc\.client_secret_env: the environment variable OIDC_SECRET is not set/
    assert.throws(() => signInOf(oidc)?.clientSecret(), expected)
    assert.match(findMistakes(write(oidc), {}).mistakes.join(), expected)
  })

  it('needs no encryption on this machine', () => {
    for (const host of ['localhost', '127.0.0.1:9000', '[::1]:9000']) {
      assert.equal(signInOf({ ...least, issuer: `http://${host}` })?.issuer, `http://${host}`)
    }
  })

  it('says what to change', () => {
    const rule = (changes: object) => ({
      ...least,
      roles: [{ group: 'g', role: 'member', workspace: 'a', ...changes }],
    })
    const { operator_url: _, ...withoutUrl } = least
    for (const [oidc, message] of [
      [
        { ...least, issuer: 'http://id.example.com' },
        /oidc\.issuer: must begin with https:\/\/, unless it is on this machine/,
      ],
      [{ ...least, operator_url: 'http://10.0.0.1' }, /oidc\.operator_url: must begin with https/],
      [{ ...least, public_url: 'http://weir.example.com' }, /oidc\.public_url: must begin with https/],
      [{ ...least, scopes: ['profile'] }, /oidc\.scopes: must contain openid/],
      [{ ...least, scopes: ['openid profile'] }, /a scope, such as openid/],
      [{ ...least, roles: [] }, /oidc\.roles/],
      [{ ...least, session_hours: 0 }, /oidc\.session_hours/],
      [rule({ role: 'owner' }), /oidc\.roles\[0\]\.role/],
      [
        rule({ workspace: undefined }),
        /roles\[0\]\.role: member is a role in a workspace: add workspace, with its name/,
      ],
      [rule({ role: 'viewer' }), /roles\[0\]\.workspace: leave it out: viewer is a role in the operator's console/],
      [
        withoutUrl,
        /roles\[0\]\.role: operator needs sign_in\.oidc\.operator_url, where people reach the operator's console/,
      ],
      [
        { ...rule({}), public_url: undefined },
        /roles\[0\]\.role: member needs sign_in\.oidc\.public_url, where people reach the console of workspaces/,
      ],
    ] as const) {
      assert.match(findMistakes(write(oidc), {}).mistakes.join('\n'), message)
    }
  })
})
