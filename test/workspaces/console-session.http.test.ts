import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, it } from 'node:test'
import { startService, type Service } from '../../src/compose.ts'
import { loadConfig } from '../../src/config.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

let engine: ScriptedEngine
let weir: TestWeir

before(async () => {
  engine = await scriptedEngine()
  weir = await startWeir({
    rate_limit: { requests_per_minute: 10_000, unauthenticated_per_minute: 10_000 },
    models: [modelEntry([engine.url])],
  })
})
after(async () => {
  await weir.stop()
  await engine.close()
})

const OWN = { 'x-weir-console': '1' }

function ask(method: string, path: string, headers: Record<string, string>, body?: object): Promise<Response> {
  return fetch(weir.service.url + path, {
    method,
    headers: { ...headers, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
}

async function signIn(
  body: object,
  headers: Record<string, string> = OWN,
): Promise<{ response: Response; cookie: string }> {
  const response = await ask('POST', '/console/api/session', headers, body)
  const [pair = ''] = (response.headers.get('set-cookie') ?? '').split(';')
  return { response, cookie: pair }
}

async function codeOf(response: Response): Promise<string> {
  const { error } = (await response.json()) as { error: { code: string } }
  return `${response.status} ${error.code}`
}

const chatBody = { model: 'meta/test-8b', messages: [{ role: 'user', content: 'Hi' }] }

describe('signing in to the console', () => {
  it('with a key sets a cookie that scripts cannot read and other sites cannot send', async () => {
    const { response, cookie } = await signIn({ key: weir.key })
    assert.equal(response.status, 200)
    const header = response.headers.get('set-cookie') ?? ''
    assert.match(header, /^weir_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/)
    assert.ok(!header.includes(weir.key))
    const session = (await (await ask('GET', '/console/api/session', { cookie })).json()) as Record<string, unknown>
    assert.equal(session['workspace'], 'default')
    assert.ok(!JSON.stringify(session).includes(weir.key))
  })

  it('behind TLS sets a cookie that is only sent over TLS', async () => {
    const { response } = await signIn({ key: weir.key }, { ...OWN, 'x-forwarded-proto': 'https' })
    assert.match(response.headers.get('set-cookie') ?? '', /; Secure$/)
  })

  it('with a wrong key, a used link or neither is refused', async () => {
    assert.equal(await codeOf((await signIn({ key: 'weir_wrong' })).response), '401 invalid_api_key')
    assert.equal(await codeOf((await signIn({ link: 'nothing' })).response), '401 invalid_api_key')
    assert.equal(await codeOf((await signIn({})).response), '400 missing_required_parameter')
    assert.equal(await codeOf((await signIn({ key: weir.key, link: 'x' })).response), '400 missing_required_parameter')
  })

  it('works once with a link that the operator issued', async () => {
    const issued = await weir.admin('POST', '/admin/v1/workspaces/default/console-links')
    assert.equal(issued.status, 201)
    const { path } = (await issued.json()) as { path: string }
    const secret = new URLSearchParams(path.split('#')[1]).get('link') ?? ''
    const { response, cookie } = await signIn({ link: secret })
    assert.equal(response.status, 200)
    const session = (await response.json()) as { workspace: string; key_id: string | null }
    assert.deepEqual([session.workspace, session.key_id], ['default', null])
    assert.equal(await codeOf((await signIn({ link: secret })).response), '401 invalid_api_key')
    const chat = await ask('POST', '/api/v1/chat/completions', { ...OWN, cookie }, chatBody)
    assert.equal(chat.status, 200)
    await chat.arrayBuffer()
    const rows = await weir.ledger()
    assert.match(rows.at(-1)?.keyId ?? '', /^console_/)
  })
})

describe('the session of a console', () => {
  it('calls the API as the key that signed in', async () => {
    const { cookie } = await signIn({ key: weir.key })
    const models = await ask('GET', '/api/v1/models', { cookie })
    assert.equal(models.status, 200)
    const chat = await ask('POST', '/api/v1/chat/completions', { ...OWN, cookie }, chatBody)
    assert.equal(chat.status, 200)
    await chat.arrayBuffer()
    assert.match((await weir.ledger()).at(-1)?.keyId ?? '', /^key_/)
  })

  it('changes nothing for a page of another site', async () => {
    const { cookie } = await signIn({ key: weir.key })
    const before = engine.calls.length
    const forged = await ask('POST', '/api/v1/chat/completions', { cookie }, chatBody)
    assert.equal(await codeOf(forged), '401 missing_api_key')
    const crossSite = { cookie, 'sec-fetch-site': 'cross-site' }
    assert.equal(await codeOf(await ask('GET', '/api/v1/usage', crossSite)), '401 missing_api_key')
    assert.equal(
      await codeOf(await ask('POST', '/api/v1/chat/completions', { ...crossSite, ...OWN }, chatBody)),
      '401 missing_api_key',
    )
    assert.equal(await codeOf((await signIn({ key: weir.key }, {})).response), '401 missing_api_key')
    assert.equal(engine.calls.length, before)
    assert.equal((await ask('GET', '/api/v1/models', { cookie, 'sec-fetch-site': 'same-origin' })).status, 200)
  })

  it('ends when its key is revoked', async () => {
    const made = (await (await weir.admin('POST', '/admin/v1/keys', { workspace: 'default' })).json()) as {
      id: string
      key: string
    }
    const { cookie } = await signIn({ key: made.key })
    assert.equal((await ask('GET', '/console/api/session', { cookie })).status, 200)
    await weir.admin('DELETE', `/admin/v1/keys/${made.id}`)
    assert.equal(await codeOf(await ask('GET', '/console/api/session', { cookie })), '401 missing_api_key')
    assert.equal(await codeOf(await ask('GET', '/api/v1/models', { cookie })), '401 missing_api_key')
  })

  it('ends when its owner signs out', async () => {
    const { cookie } = await signIn({ key: weir.key })
    const left = await ask('DELETE', '/console/api/session', { ...OWN, cookie })
    assert.match(left.headers.get('set-cookie') ?? '', /^weir_session=; .*Max-Age=0/)
    assert.equal(await codeOf(await ask('GET', '/console/api/session', { cookie })), '401 missing_api_key')
  })

  it('is required below /console/api: a key is not enough', async () => {
    const response = await ask('GET', '/console/api/session', { authorization: `Bearer ${weir.key}` })
    assert.equal(await codeOf(response), '401 missing_api_key')
  })
})

describe('a restart', () => {
  const environment = (token: string) => ({ WEIR_OPERATOR_TOKEN: token, ENGINE_KEY: 'engine-secret' })
  const enter = async (url: string, body: object): Promise<string> => {
    const response = await fetch(`${url}/console/api/session`, {
      method: 'POST',
      headers: { ...OWN, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    assert.equal(response.status, 200)
    return (response.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
  }
  const statusOf = async (url: string, cookie: string): Promise<number> =>
    (await fetch(`${url}/console/api/session`, { headers: { cookie } })).status

  it('keeps members and the operator signed in; a new operator token signs the operator out', async (t) => {
    const own = await startWeir({ models: [modelEntry([engine.url])] })
    const { configFile: config, dataDir: data, operatorToken } = own
    let running: Service = own.service
    t.after(async () => {
      await running.stop()
      await own.stop()
    })
    const restart = async (token = operatorToken): Promise<void> => {
      await running.stop()
      running = await startService(loadConfig({ config, data }, environment(token)))
    }
    const member = await enter(running.url, { key: own.key })
    const operator = await enter(running.adminUrl, { token: operatorToken })
    const left = await enter(running.url, { key: own.key })
    await fetch(`${running.url}/console/api/session`, { method: 'DELETE', headers: { ...OWN, cookie: left } })
    const link = await running.consoleLink()
    await restart()
    assert.deepEqual(
      [
        await statusOf(running.url, member),
        await statusOf(running.adminUrl, operator),
        await statusOf(running.url, left),
      ],
      [200, 200, 401],
    )
    await enter(running.url, { link: new URL(link ?? '').hash.replace('#link=', '') })
    await restart('another-operator-token-0123456789')
    assert.deepEqual([await statusOf(running.url, member), await statusOf(running.adminUrl, operator)], [200, 401])
    const database = new DatabaseSync(join(data, 'weir.db'), { readOnly: true })
    const stored = JSON.stringify(database.prepare('SELECT * FROM console_sessions').all())
    database.close()
    for (const secret of [member, operator].map((it) => it.split('=')[1] ?? '')) assert.ok(!stored.includes(secret))
    assert.ok(!stored.includes(own.key) && !stored.includes(operatorToken))
  })
})

describe('the page of the console', () => {
  it('is the same at every address, with a strict policy, and loads only its own files', async () => {
    const page = await ask('GET', '/console/models/meta/test-8b', {})
    const policy = page.headers.get('content-security-policy') ?? ''
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';/)
    assert.doesNotMatch(policy, /unsafe|\*|http/)
    const text = await page.text()
    assert.equal(text, await (await ask('GET', '/console', {})).text())
    const addresses = [...text.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, address = '']) => address)
    const own = addresses.filter((address) => address.startsWith('/console/assets/'))
    const others = addresses.filter((address) => !own.includes(address)).map((address) => address.split('?')[0])
    assert.deepEqual([own.length, others], [3, ['/theme/mark.svg', '/theme/scheme.js', '/theme/mark.svg']])
    let script = 0
    for (const address of own) {
      const asset = await ask('GET', address, { 'accept-encoding': 'gzip' })
      assert.equal(asset.status, 200)
      assert.match(asset.headers.get('cache-control') ?? '', /immutable/)
      assert.equal(asset.headers.get('content-encoding'), 'gzip')
      const size = Number(asset.headers.get('content-length'))
      if (address.includes('.js')) script += size
      else assert.ok(size > 1000 && size < 20 * 1024, `${address} has ${size} bytes`)
    }
    assert.ok(script > 1000 && script < 100 * 1024, `the script has ${script} bytes`)
  })

  it('has a script that loads later, for the chat, and no other files', async () => {
    const page = await (await ask('GET', '/console', {})).text()
    const [, main = ''] = /<script type="module" src="([^"]+)"/.exec(page) ?? []
    const [later = ''] = /markdown-library-\w+\.js/.exec(await (await ask('GET', main, {})).text()) ?? []
    const asset = await ask('GET', `/console/assets/${later}`, { 'accept-encoding': 'gzip' })
    assert.equal(asset.status, 200)
    assert.match(asset.headers.get('content-type') ?? '', /^text\/javascript/)
    assert.match(asset.headers.get('cache-control') ?? '', /immutable/)
    const size = Number(asset.headers.get('content-length'))
    assert.ok(size > 1000 && size < 60 * 1024, `${later} has ${size} bytes`)
    assert.equal(await codeOf(await ask('GET', '/console/assets/..%2fstamp', {})), '404 unknown_url')
    assert.equal(await codeOf(await ask('GET', '/console/assets/operator.js', {})), '404 unknown_url')
  })

  it('of the operator is as small', async () => {
    const text = await (await fetch(`${weir.adminUrl}/console`)).text()
    for (const [, address = ''] of text.matchAll(/(?:src|href)="(\/console\/[^"]+)"/g)) {
      const asset = await fetch(weir.adminUrl + address, { headers: { 'accept-encoding': 'gzip' } })
      const size = Number(asset.headers.get('content-length'))
      assert.ok(size > 1000 && size < 100 * 1024, `${address} has ${size} bytes`)
    }
  })

  it('is not returned for an unknown address of its API', async () => {
    assert.equal(await codeOf(await ask('GET', '/console/api/nothing', {})), '404 unknown_url')
  })
})
