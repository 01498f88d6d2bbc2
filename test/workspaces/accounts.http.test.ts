import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { stringify } from 'yaml'
import { startService } from '../../src/compose.ts'
import { loadConfig } from '../../src/config.ts'
import { openStore } from '../../src/store/open.ts'
import { formatKey, hashKey } from '../../src/workspaces/keys/api-key.ts'
import { commandLine } from '../support/command-line.ts'
import { inLongRun } from '../support/long-run.ts'
import { roomInThisMinute } from '../support/minute.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { weirProcess } from '../support/weir-process.ts'
import { modelEntry, startWeir, withWeir, type TestWeir } from '../support/weir.ts'
import { noLimits } from '../support/key-limits.ts'

interface KeyMade {
  readonly id: string
  readonly key: string
  readonly workspace: string
}

let engine: ScriptedEngine
let weir: TestWeir

before(async () => {
  engine = await scriptedEngine()
  weir = await startWeir({ models: [modelEntry([engine.url])] })
})
after(async () => {
  await weir.stop()
  await engine.close()
})

/**
 * In how many files of the data directory a text is. Another process looks: one that has a database open must not open
 * and close its files, since that ends its locks on them.
 */
async function filesWith(text: string): Promise<number> {
  const { stdout } = await promisify(execFile)('sh', [
    '-c',
    'grep -rlaF -D skip -e "$0" "$1" | wc -l',
    text,
    weir.dataDir,
  ])
  return Number(stdout)
}

const where = (): string[] => ['--config', weir.configFile, '--data', weir.dataDir]

async function made(path: string, body: object): Promise<Record<string, unknown>> {
  const response = await weir.admin('POST', path, body)
  const answer = (await response.json()) as Record<string, unknown>
  assert.equal(response.status, 201, JSON.stringify(answer))
  return answer
}

async function newKey(workspace: string): Promise<KeyMade> {
  return (await made('/admin/v1/keys', { workspace })) as unknown as KeyMade
}

async function listed(path: string): Promise<Record<string, unknown>[]> {
  const response = await weir.admin('GET', path)
  assert.equal(response.status, 200)
  return ((await response.json()) as { data: Record<string, unknown>[] }).data
}

async function status(key: string | null): Promise<number> {
  const response = await weir.call('/models', { key })
  await response.arrayBuffer()
  return response.status
}

async function errorOf(response: Response): Promise<{ status: number; code: string; param: string | null }> {
  const { error } = (await response.json()) as { error: { code: string; param: string | null } }
  return { status: response.status, code: error.code, param: error.param }
}

describe("workspaces and keys by the operator's API", () => {
  it('[K2, K3] are created, listed and revoked; a revoked key stops on the next request', async () => {
    const workspace = await made('/admin/v1/workspaces', { name: 'by api' })
    assert.deepEqual([workspace['name'], workspace['requests_per_minute']], ['by api', 600])
    const first = await newKey('by api')
    const second = await newKey(String(workspace['id']))
    assert.equal(second.workspace, 'by api')
    assert.deepEqual([await status(first.key), await status(second.key)], [200, 200])

    const keys = (await listed('/admin/v1/keys')).filter((key) => key['workspace'] === 'by api')
    assert.deepEqual(
      new Map(keys.map(({ id, revoked }) => [id, revoked])),
      new Map([
        [first.id, null],
        [second.id, null],
      ]),
    )
    const revoked = await weir.admin('DELETE', `/admin/v1/keys/${first.id}`)
    assert.equal(revoked.status, 200)
    const { revoked: at } = (await revoked.json()) as { revoked: string }
    assert.ok(Math.abs(Date.parse(at) - Date.now()) < 60_000)
    assert.deepEqual([await status(first.key), await status(second.key)], [401, 200])

    // Revoking it again changes nothing, not even the time.
    const again = await weir.admin('DELETE', `/admin/v1/keys/${first.id}`)
    assert.equal(((await again.json()) as { revoked: string }).revoked, at)
    assert.ok((await listed('/admin/v1/workspaces')).some(({ name }) => name === 'by api'))
  })

  it('[K1] a key that has expired gets 401 and the reason, and works again when its expiry is moved', async () => {
    const key = formatKey(Buffer.alloc(32, 9))
    const id = 'key_expired'
    const store = await openStore({ dataDir: weir.dataDir, exclusive: false })
    const workspaceId = (await store.workspaces())[0]?.id ?? ''
    const stored = { id, workspaceId, hash: hashKey(key), ending: key.slice(-4), name: null }
    await store.createKey({ ...stored, createdAt: 1, expiresAt: 2, revokedAt: null, ...noLimits })
    await store.close()
    const refused = await weir.call('/models', { key })
    const { error } = (await refused.json()) as { error: { code: string; message: string } }
    assert.deepEqual([refused.status, error.code], [401, 'invalid_api_key'])
    assert.match(error.message, /has expired/)
    const change = async (body: object) => weir.admin('PATCH', `/admin/v1/keys/${id}`, body)
    const changed = (await (await change({ name: 'shop', expires_at: '2199-06-30' })).json()) as object
    const expected = { id, redacted: `weir_…${key.slice(-4)}`, name: 'shop', expires_at: '2199-06-30T14:00:00.000Z' }
    assert.partialDeepStrictEqual(changed, { ...expected, unreached: [] })
    assert.equal(await status(key), 200)
    const nothing = { status: 400, code: 'missing_required_parameter', param: 'name' }
    assert.deepEqual(await errorOf(await change({})), nothing)
    assert.deepEqual((await errorOf(await change({ expires_at: '2020-01-01' }))).param, 'expires_at')
    assert.equal((await weir.admin('PATCH', '/admin/v1/keys/key_none', { name: 'x' })).status, 404)
  })

  it('[K1] a wrong, revoked or missing key gets nothing but 401 and the reason', async () => {
    const { id, key } = await newKey('default')
    await weir.admin('DELETE', `/admin/v1/keys/${id}`)
    const mistyped = `${weir.key.slice(0, -1)}${weir.key.endsWith('x') ? 'y' : 'x'}`
    for (const wrong of [key, mistyped, 'sk-something', 'weir_']) {
      const response = await weir.call('/models', { key: wrong })
      assert.equal(response.headers.get('www-authenticate'), 'Bearer')
      assert.deepEqual(await errorOf(response), { status: 401, code: 'invalid_api_key', param: null })
    }
    const missing = await weir.call('/models', { key: null })
    assert.equal(missing.headers.get('www-authenticate'), 'Bearer')
    assert.deepEqual(await errorOf(missing), { status: 401, code: 'missing_api_key', param: null })
    const basic = await weir.call('/models', { key: null, headers: { authorization: `Basic ${weir.key}` } })
    assert.deepEqual(await errorOf(basic), { status: 401, code: 'missing_api_key', param: null })
    const lower = await weir.call('/models', { key: null, headers: { authorization: `bearer  ${weir.key}` } })
    assert.equal(lower.status, 200)
    await lower.arrayBuffer()
  })

  it('[K1] without a valid key, no engine is called and nothing is recorded', async () => {
    const calls = engine.calls.length
    const rows = (await weir.ledger()).length
    const response = await weir.chat({}, { key: 'weir_nobody' })
    assert.equal((await errorOf(response)).status, 401)
    assert.equal(engine.calls.length, calls)
    assert.equal((await weir.ledger()).length, rows)
  })

  it('refuses mistakes with a code and a parameter, and changes nothing', async () => {
    await made('/admin/v1/workspaces', { name: 'taken' })
    const workspaces = (await listed('/admin/v1/workspaces')).length
    const post = (path: string, body: object) => weir.admin('POST', path, body).then(errorOf)
    assert.deepEqual(await post('/admin/v1/workspaces', { name: 'taken' }), {
      status: 409,
      code: 'conflict',
      param: 'name',
    })
    for (const name of ['', ' leading', 'a/b', '../x', 'x'.repeat(65), 'new\nline']) {
      assert.deepEqual(await post('/admin/v1/workspaces', { name }), {
        status: 400,
        code: 'invalid_value',
        param: 'name',
      })
    }
    assert.deepEqual(await post('/admin/v1/workspaces', {}), {
      status: 400,
      code: 'missing_required_parameter',
      param: 'name',
    })
    assert.deepEqual(await post('/admin/v1/workspaces', { name: 5 }), {
      status: 400,
      code: 'invalid_type',
      param: 'name',
    })
    assert.deepEqual(await post('/admin/v1/keys', { workspace: 'nobody' }), {
      status: 404,
      code: 'not_found',
      param: 'workspace',
    })
    assert.equal((await errorOf(await weir.admin('DELETE', '/admin/v1/keys/key_none'))).status, 404)
    assert.equal((await errorOf(await weir.admin('GET', '/admin/v1/nothing'))).code, 'unknown_url')
    const put = await weir.admin('PUT', '/admin/v1/keys')
    assert.equal(put.headers.get('allow'), 'GET, POST')
    assert.equal((await errorOf(put)).code, 'method_not_allowed')
    assert.equal((await listed('/admin/v1/workspaces')).length, workspaces)
  })

  it('creates a workspace once, even if two requests for it arrive together', async () => {
    const answers = await Promise.all([1, 2].map(() => weir.admin('POST', '/admin/v1/workspaces', { name: 'twins' })))
    assert.deepEqual(
      answers.map((answer) => answer.status).sort((one, other) => one - other),
      [201, 409],
    )
    await Promise.all(answers.map((answer) => answer.arrayBuffer()))
    assert.equal((await listed('/admin/v1/workspaces')).filter(({ name }) => name === 'twins').length, 1)
  })

  it('needs the operator token; an API key is not enough', async () => {
    const get = (path: string, authorization?: string) =>
      fetch(weir.adminUrl + path, authorization === undefined ? {} : { headers: { authorization } })
    const guarded = [
      '/admin/v1/workspaces',
      '/admin/v1/keys',
      '/admin/v1/usage?workspace=default',
      '/metrics',
      '/nothing',
    ]
    for (const path of guarded) {
      assert.equal((await errorOf(await get(path))).code, 'missing_api_key', path)
      for (const wrong of [weir.key, `${weir.operatorToken}x`, weir.operatorToken.slice(1), 'x']) {
        const response = await get(path, `Bearer ${wrong}`)
        assert.equal(response.headers.get('www-authenticate'), 'Bearer')
        assert.deepEqual(await errorOf(response), { status: 401, code: 'invalid_api_key', param: null })
      }
    }
    const response = await fetch(`${weir.adminUrl}/admin/v1/keys`, { method: 'POST', body: '{"workspace":"default"}' })
    assert.equal((await errorOf(response)).status, 401)
    for (const path of ['/healthz', '/readyz']) assert.equal((await get(path)).status, 200, path)
  })

  it('do not exist on the public listener, whatever the token', async () => {
    const { url } = weir.service
    const paths = ['/admin/v1/workspaces', '/admin/v1/keys', '/metrics', '/api/v1/admin/v1/keys', '/admin']
    for (const path of paths) {
      const asOperator = await weir.call(url + path, { key: weir.operatorToken })
      assert.equal((await errorOf(asOperator)).status, 401, path)
      const asCaller = await weir.call(url + path)
      assert.deepEqual(await errorOf(asCaller), { status: 404, code: 'unknown_url', param: null }, path)
    }
    // The public API is not on the operator's listener, either.
    assert.equal((await errorOf(await weir.admin('GET', '/api/v1/models'))).code, 'unknown_url')
  })
})

describe('workspaces and keys by the command line, while the service runs', () => {
  it('[K3] a new key works at once, and a revoked key stops on the next request', async () => {
    const workspace = (await commandLine(['workspaces', 'create', 'by cli', '--json', ...where()])).json()
    assert.equal(workspace['name'], 'by cli')
    const issued = (
      await commandLine(['keys', 'create', '--workspace', 'by cli', '--json', ...where()])
    ).json<KeyMade>()
    assert.deepEqual(Object.keys(issued).sort(), ['id', 'key', 'workspace'])
    assert.equal(await status(issued.key), 200)
    assert.ok((await listed('/admin/v1/workspaces')).some(({ name }) => name === 'by cli'))

    const revoked = (await commandLine(['keys', 'revoke', issued.id, '--json', ...where()])).json()
    assert.equal(revoked['id'], issued.id)
    assert.equal(await status(issued.key), 401)
  })

  it('[R1] a new rate limit applies to the next request', async () => {
    await made('/admin/v1/workspaces', { name: 'limited by cli' })
    const { key } = await newKey('limited by cli')
    const set = await commandLine([
      'workspaces',
      'set',
      'limited by cli',
      '--requests-per-minute',
      '7',
      '--json',
      ...where(),
    ])
    assert.equal(set.json()['requests_per_minute'], 7)
    const response = await weir.call('/models', { key })
    assert.equal(response.headers.get('x-ratelimit-limit'), '7')
    await response.arrayBuffer()
  })

  it('[M6] a new price applies to the next request', async () => {
    await made('/admin/v1/workspaces', { name: 'priced by cli' })
    const { key } = await newKey('priced by cli')
    const prices = ['--input-per-million', '0.10', '--output-per-million', '0.30']
    const model = ['--workspace', 'priced by cli', '--model', 'test-8b']
    const set = await commandLine(['prices', 'set', ...model, ...prices, '--json', ...where()])
    assert.equal(set.json()['model'], 'meta/test-8b')
    const response = await weir.call('/models/detail?slug=test-8b', { key })
    const { pricing } = (await response.json()) as { pricing: { per_million_tokens: object } }
    assert.deepEqual(pricing.per_million_tokens, { input: '0.10', output: '0.30', cached_input: '0.05' })
  })
})

describe('the list of workspaces', () => {
  it('is served in pages, the newest first, and searches for a part of a name, ignoring case', async () => {
    for (const name of ['Paged one', 'paged two', 'Paged three']) await made('/admin/v1/workspaces', { name })
    const page = async (query: string): Promise<{ data: { name: string }[]; next: string | null }> =>
      (await (await weir.admin('GET', `/admin/v1/workspaces?${query}`)).json()) as {
        data: { name: string }[]
        next: string | null
      }
    const names = ({ data }: { data: { name: string }[] }): string[] => data.map(({ name }) => name)
    const first = await page('search=PAGED&limit=2')
    assert.deepEqual(names(first), ['Paged three', 'paged two'])
    const second = await page(`search=PAGED&limit=2&before=${first.next}`)
    assert.deepEqual([names(second), second.next], [['Paged one'], null])
    assert.deepEqual((await page('search=paged%20t&limit=2')).next, null)
    assert.equal((await weir.admin('GET', '/admin/v1/workspaces?before=ws_none')).status, 400)
    const one = (await (await weir.admin('GET', '/admin/v1/workspaces/paged%20two')).json()) as { name: string }
    assert.equal(one.name, 'paged two')
    assert.equal((await weir.admin('GET', '/admin/v1/workspaces/nobody')).status, 404)
  })
})

describe('how commands reach the running service', () => {
  it('an operator token from the environment is stored in no file', async () => {
    await (await weir.admin('GET', '/admin/v1/workspaces')).text()
    assert.equal(await filesWith(weir.operatorToken), 0)
    assert.equal(statSync(join(weir.dataDir, 'weir.sock')).mode & 0o777, 0o600)
  })

  it('[K3] a revoked key stops at once, also if the path of the data directory is too long for a socket', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-long-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const data = join(folder, 'd'.repeat(100), 'd'.repeat(100))
    const config = join(folder, 'weir.yaml')
    writeFileSync(config, stringify({ server: { port: 0, admin_port: 0 }, log: { level: 'silent' }, models: [] }))
    const service = await startService(loadConfig({ config, data }, {}))
    t.after(() => service.stop())
    const here = ['--json', '--config', config, '--data', data]
    const get = async (key: string): Promise<number> => {
      const response = await fetch(`${service.url}/api/v1/models`, { headers: { authorization: `Bearer ${key}` } })
      await response.arrayBuffer()
      return response.status
    }
    const { id, key } = (await commandLine(['keys', 'create', '--workspace', 'default', ...here])).json<KeyMade>()
    assert.equal(await get(key), 200)
    await commandLine(['keys', 'revoke', id, ...here])
    assert.equal(await get(key), 401)
    const { socket } = JSON.parse(readFileSync(join(data, 'service.json'), 'utf8')) as { socket: string }
    assert.ok(existsSync(socket))
    await service.stop()
    assert.ok(!existsSync(dirname(socket)))
  })

  it('[K3] a revoked key stops at once, also after the service was killed and started again', inLongRun, async (t) => {
    const killed = await weirProcess({ server: { port: 0, admin_port: 0 }, models: [] })
    t.after(() => killed.remove())
    const get = async (key: string): Promise<number> => {
      const response = await fetch(`${killed.base}/models`, { headers: { authorization: `Bearer ${key}` } })
      await response.arrayBuffer()
      return response.status
    }
    killed.signal('SIGKILL')
    await killed.ended()
    assert.ok(existsSync(join(killed.dataDir, 'weir.sock')), 'the socket is left behind')
    const here = ['--json', '--data', killed.dataDir]
    const { id, key } = (await commandLine(['keys', 'create', '--workspace', 'default', ...here])).json<KeyMade>()
    await killed.start()
    assert.equal(await get(key), 200)
    await commandLine(['keys', 'revoke', id, ...here])
    assert.equal(await get(key), 401)
    killed.signal('SIGTERM')
    assert.equal(await killed.ended(), 0)
    assert.deepEqual(
      ['weir.sock', 'service.json'].filter((name) => existsSync(join(killed.dataDir, name))),
      [],
    )
  })
})

describe('workspaces and keys by the command line, on a stopped service', () => {
  it('[K2, K3] exist when it starts, and are unchanged after it has stopped', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-stopped-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const config = join(folder, 'weir.yaml')
    writeFileSync(config, stringify({ server: { port: 0, admin_port: 0 }, log: { level: 'silent' }, models: [] }))
    const here = ['--json', '--config', config]
    const workspace = (await commandLine(['workspaces', 'create', 'acme', ...here])).json()
    const create = ['keys', 'create', '--workspace', 'acme', ...here]
    const [kept, revoked] = [(await commandLine(create)).json<KeyMade>(), (await commandLine(create)).json<KeyMade>()]
    await commandLine(['keys', 'revoke', revoked.id, ...here])

    const service = await startService(loadConfig({ config }, {}))
    const get = async (key: string): Promise<number> => {
      const response = await fetch(`${service.url}/api/v1/models`, { headers: { authorization: `Bearer ${key}` } })
      await response.arrayBuffer()
      return response.status
    }
    const answers = [await get(kept.key), await get(revoked.key)]
    await service.stop()
    assert.deepEqual(answers, [200, 401])
    assert.equal(service.firstKey, undefined, 'no first key where there are workspaces already')

    const list = (await commandLine(['keys', 'list', ...here])).json<{
      data: { id: string; revoked: string | null }[]
    }>()
    assert.deepEqual(
      list.data.map((key) => [key.id, key.revoked === null]),
      [
        [revoked.id, false],
        [kept.id, true],
      ],
    )
    const workspaces = (await commandLine(['workspaces', 'list', ...here])).json<{ data: object[] }>()
    assert.deepEqual(workspaces.data, [workspace])
  })
})

describe('a key in the data directory', () => {
  it('[K3] is in no file; only its SHA-256 is stored', async () => {
    const { key } = await newKey('default')
    await weir.chat({}, { key }).then((response) => response.arrayBuffer())
    for (const secret of [key, weir.key]) {
      assert.equal(await filesWith(secret), 0, 'the key')
      assert.equal(await filesWith(secret.slice('weir_'.length, -6)), 0, 'the random part of the key')
      assert.ok((await filesWith(createHash('sha256').update(secret).digest('hex'))) > 0, 'the hash')
    }
    assert.equal(statSync(weir.dataDir).mode & 0o077, 0, 'and no other user may read it')
  })

  it('is shown once: lists contain neither the key nor its hash', async () => {
    const { id, key } = await newKey('default')
    const hash = createHash('sha256').update(key).digest('hex')
    const text = JSON.stringify(await listed('/admin/v1/keys'))
    assert.ok(text.includes(id))
    assert.ok(!text.includes(key) && !text.includes(hash))
  })
})

describe('the limits and prices of a workspace', () => {
  it('[K2, R1] one rate limit is shared by all its keys, and not with other workspaces', async () => {
    await made('/admin/v1/workspaces', { name: 'shared' })
    await made('/admin/v1/workspaces', { name: 'another' })
    const keys = await Promise.all([1, 2, 3].map(() => newKey('shared')))
    const other = await newKey('another')
    await weir.admin('PATCH', '/admin/v1/workspaces/shared', { requests_per_minute: 1_000_000 })
    await roomInThisMinute()
    const remaining: number[] = []
    for (const { key } of [...keys, ...keys]) {
      const response = await weir.call('/models', { key })
      remaining.push(Number(response.headers.get('x-ratelimit-remaining')))
      await response.arrayBuffer()
    }
    assert.deepEqual(remaining, [999_999, 999_998, 999_997, 999_996, 999_995, 999_994])
    const response = await weir.call('/models', { key: other.key })
    assert.equal(response.headers.get('x-ratelimit-remaining'), '599')
    await response.arrayBuffer()
  })

  it('[R1] the rate limit changes while the service runs: lowered, raised, and back to the default', async () => {
    await made('/admin/v1/workspaces', { name: 'adjusted' })
    const { key } = await newKey('adjusted')
    const limit = async (): Promise<[number, string | null]> => {
      const response = await weir.call('/models', { key })
      await response.arrayBuffer()
      return [response.status, response.headers.get('x-ratelimit-limit')]
    }
    const set = async (requests: number | null): Promise<void> => {
      const response = await weir.admin('PATCH', '/admin/v1/workspaces/adjusted', { requests_per_minute: requests })
      assert.equal(response.status, 200)
      assert.equal(((await response.json()) as Record<string, unknown>)['requests_per_minute'], requests ?? 600)
    }
    await roomInThisMinute()
    assert.deepEqual(
      [await limit(), await limit()],
      [
        [200, '600'],
        [200, '600'],
      ],
    )
    await set(2)
    assert.deepEqual(await limit(), [429, '2'])
    await set(3)
    assert.deepEqual(
      [await limit(), await limit()],
      [
        [200, '3'],
        [429, '3'],
      ],
    )
    await set(null)
    assert.deepEqual(await limit(), [200, '600'])
  })

  it('[R1] a mistake does not change the rate limit', async () => {
    await made('/admin/v1/workspaces', { name: 'careful' })
    await weir.admin('PATCH', '/admin/v1/workspaces/careful', { requests_per_minute: 5 })
    const patch = (body: object) => weir.admin('PATCH', '/admin/v1/workspaces/careful', body).then(errorOf)
    for (const wrong of [0, -1, 1.5, 1e12, '5']) {
      const { status, param } = await patch({ requests_per_minute: wrong })
      assert.deepEqual([status, param], [400, 'requests_per_minute'], String(wrong))
    }
    // A mistyped field must not mean "no limit of its own".
    assert.equal((await patch({ request_per_minute: 9 })).status, 400)
    assert.equal((await patch({})).status, 400)
    const careful = (await listed('/admin/v1/workspaces')).find(({ name }) => name === 'careful')
    assert.equal(careful?.['requests_per_minute'], 5)
  })

  it('a new spend limit keeps its kind, and the kind changes on its own', async () => {
    await made('/admin/v1/workspaces', { name: 'thrifty' })
    const change = async (body: object): Promise<unknown[]> => {
      const response = await weir.admin('PATCH', '/admin/v1/workspaces/thrifty', body)
      const answer = (await response.json()) as Record<string, unknown>
      assert.equal(response.status, 200, JSON.stringify(answer))
      return [answer['spend_limit'], answer['spend_limit_kind']]
    }
    assert.deepEqual(await change({ spend_limit: '100' }), ['100.00', 'hard'], 'hard by default')
    assert.deepEqual(await change({ spend_limit_kind: 'soft' }), ['100.00', 'soft'])
    assert.deepEqual(await change({ spend_limit: '250' }), ['250.00', 'soft'])
    assert.deepEqual(await change({ requests_per_minute: 5 }), ['250.00', 'soft'])
    assert.deepEqual(await change({ spend_limit: '250', spend_limit_kind: 'hard' }), ['250.00', 'hard'])
    assert.deepEqual(await change({ spend_limit: '300', spend_limit_kind: 'soft' }), ['300.00', 'soft'])
    assert.deepEqual(await change({ spend_limit: null }), [null, null])
    assert.deepEqual(await change({ spend_limit: '1' }), ['1.00', 'hard'], 'a removed limit leaves no kind behind')
  })

  it('--soft and --hard change the kind by command, and nothing else does', async () => {
    await made('/admin/v1/workspaces', { name: 'thrifty by cli' })
    const set = async (...flags: string[]): Promise<unknown[]> => {
      const answer = (await commandLine(['workspaces', 'set', 'thrifty by cli', ...flags, '--json', ...where()])).json()
      return [answer['spend_limit'], answer['spend_limit_kind']]
    }
    assert.deepEqual(await set('--spend-limit', '100', '--soft'), ['100.00', 'soft'])
    assert.deepEqual(await set('--requests-per-minute', '5'), ['100.00', 'soft'])
    assert.deepEqual(await set('--spend-limit', '250'), ['250.00', 'soft'])
    assert.deepEqual(await set('--hard'), ['250.00', 'hard'])
    assert.deepEqual(await set('--soft'), ['250.00', 'soft'])
  })

  it('a change that would have no effect is refused, not ignored', async () => {
    await made('/admin/v1/workspaces', { name: 'unlimited' })
    const patch = (body: object) => weir.admin('PATCH', '/admin/v1/workspaces/unlimited', body).then(errorOf)
    const refused = { status: 400, code: 'invalid_value', param: 'spend_limit_kind' }
    assert.deepEqual(await patch({ spend_limit_kind: 'soft' }), refused, 'there is no limit')
    assert.deepEqual(await patch({ spend_limit: null, spend_limit_kind: 'soft' }), refused)
    assert.deepEqual(await patch({ buyer: {} }), { status: 400, code: 'missing_required_parameter', param: 'buyer' })
    // Mistyped fields, or fields of another request.
    const post = (path: string, body: object) => weir.admin('POST', path, body).then(errorOf)
    for (const [path, body, param] of [
      ['/admin/v1/workspaces', { name: 'x', spend_limit: '5' }, 'spend_limit'],
      ['/admin/v1/keys', { workspace: 'unlimited', expires: '2027-01-01' }, 'expires'],
      ['/admin/v1/invoices', { workspace: 'unlimited', period: '2026-01', draft: true }, 'draft'],
      ['/admin/v1/invoices/preview', { workspace: 'unlimited', period: '2026-01', currency: 'USD' }, 'currency'],
      ['/admin/v1/invoices/credit', { workspace: 'unlimited', period: '2026-01', reason: 'x', total: '5' }, 'total'],
      ['/admin/v1/usage/request/correct', { reason: 'x', amount: '5' }, 'amount'],
    ] as const) {
      const error = await post(path, body)
      assert.deepEqual([error.status, error.param], [400, param], path)
    }
    assert.ok(!(await listed('/admin/v1/workspaces')).some(({ name }) => name === 'x'))
  })

  it('[M6] prices of its own change while the service runs: set, shown, charged, and removed', async () => {
    const id = 'meta/test-8b'
    await made('/admin/v1/workspaces', { name: 'valued' })
    const { key } = await newKey('valued')
    const shown = async (): Promise<unknown> => {
      const response = await weir.call(`/models/${id}`, { key })
      return ((await response.json()) as { pricing: { per_million_tokens: object } }).pricing.per_million_tokens
    }
    const usage = async () => (await listed('/admin/v1/usage?workspace=valued')).map((row) => row['amount_pico_aud'])
    const ask = async (): Promise<void> => {
      const response = await weir.chat({}, { key })
      assert.equal(response.status, 200, await response.text())
    }

    const list = { input: '0.20', output: '0.60', cached_input: '0.05' }
    assert.deepEqual(await shown(), list)
    await ask()
    const pricing = { input_per_million: '0.10', output_per_million: '0.30', cached_input_per_million: '0.01' }
    const put = await weir.admin('PUT', `/admin/v1/workspaces/valued/prices/${id}`, pricing)
    assert.deepEqual(await put.json(), { model: id, pricing })
    assert.deepEqual(await shown(), { input: '0.10', output: '0.30', cached_input: '0.01' })
    assert.deepEqual(await listed('/admin/v1/workspaces/valued/prices'), [{ model: id, pricing }])
    await ask()
    const taken = await weir.admin('DELETE', `/admin/v1/workspaces/valued/prices/${id}`)
    assert.equal(taken.status, 200)
    assert.deepEqual(await shown(), list)
    await ask()
    // 10 tokens in and 3 out, each request at the price that applied then.
    const atList = String(10n * 200_000n + 3n * 600_000n)
    assert.deepEqual(await usage(), [atList, String(10n * 100_000n + 3n * 300_000n), atList])

    // No other price has changed.
    const other = await weir.call(`/models/${id}`)
    const { pricing: of } = (await other.json()) as { pricing: { per_million_tokens: object } }
    assert.deepEqual(of.per_million_tokens, list)
  })

  it('[M6] a mistake does not change a price', async () => {
    const put = (path: string, body: object) =>
      weir.admin('PUT', `/admin/v1/workspaces/default/prices/${path}`, body).then(errorOf)
    assert.equal((await put('meta/test-8b', { input_per_million: '0.0000001' })).param, 'input_per_million')
    assert.equal((await put('meta/test-8b', { input_per_million: 0.1 })).status, 400)
    assert.equal((await put('meta/test-8b', { input_price: '0.1' })).status, 400)
    assert.equal((await put('meta/none', { input_per_million: '0.1' })).code, 'model_not_found')
    assert.deepEqual(await listed('/admin/v1/workspaces/default/prices'), [])
  })
})

describe('the first start', () => {
  it('[C4] creates a workspace and a key that work immediately', async () => {
    await withWeir({ models: [] }, async (fresh) => {
      assert.match(fresh.key, /^weir_[0-9A-Za-z]{49}$/)
      const models = await fresh.call('/models')
      assert.deepEqual(await models.json(), { object: 'list', data: [] })
    })
  })
})
