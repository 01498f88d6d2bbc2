import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually } from '../support/waiting.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

/** Every route that changes something is on record. The routes are those of the OpenAPI documents. */

let engine: ScriptedEngine
let weir: TestWeir
let cookie: string

const OWN = { 'x-weir-console': '1', 'content-type': 'application/json' }

before(async () => {
  engine = await scriptedEngine()
  weir = await startWeir({
    rate_limit: { requests_per_minute: 10_000, unauthenticated_per_minute: 10_000 },
    models: [modelEntry([engine.url])],
  })
  await weir.admin('POST', '/admin/v1/workspaces', { name: 'acme' })
  const made = await weir.admin('POST', '/admin/v1/keys', { workspace: 'default', name: 'manager', manage_keys: true })
  cookie = await signIn({ key: ((await made.json()) as { key: string }).key })
})
after(async () => {
  await weir.stop()
  await engine.close()
})

async function signIn(body: object): Promise<string> {
  const response = await member('POST', '/console/api/session', body, '')
  assert.equal(response.status, 200)
  return (response.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
}

const member = (method: string, path: string, body?: unknown, as = cookie): Promise<Response> =>
  fetch(weir.service.url + path, {
    method,
    headers: { ...OWN, cookie: as },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })

interface Entry {
  readonly id: number
  readonly actor: string
  readonly action: string
  readonly title: string
  readonly subject: string
  readonly before: string | null
  readonly after: string | null
  readonly outcome: string
}

/** The state after a change is on record a moment after its response. */
async function log(): Promise<readonly Entry[]> {
  let entries: readonly Entry[] = []
  await eventually(
    'every change has ended',
    async () => {
      const response = await weir.admin('GET', '/admin/v1/audit-log?limit=200')
      entries = ((await response.json()) as { data: Entry[] }).data
      return entries.every(({ outcome }) => outcome !== 'begun')
    },
    60_000,
  )
  return entries
}

interface Operation {
  readonly operationId: string
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly example?: string }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly example?: unknown }>> }
}

interface Route extends Operation {
  readonly method: string
  readonly path: string
}

/** Those that are not for reading, with the examples of their parameters in the path. */
async function routesOf(base: string, document: Promise<Response>): Promise<readonly Route[]> {
  const { paths } = (await (await document).json()) as {
    paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  }
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method]) => ['post', 'put', 'patch', 'delete'].includes(method))
      .map(([method, operation]) => {
        const inPath = (operation.parameters ?? []).filter((it) => it.in === 'path')
        const filled = inPath.reduce((text, { name, example }) => text.replace(`{${name}}`, example ?? ''), path)
        return { ...operation, method: method.toUpperCase(), path: base + filled }
      }),
  )
}

/** What is not in the log, and why. A new route that changes something has to be recorded, or named here. */
const unrecorded: Readonly<Record<string, string>> = {
  previewInvoice: 'only looks',
  previewCatalog: 'only looks',
  simulateLimits: 'only looks',
  signIn: 'begins a session, and changes nothing of the workspace',
  signOut: 'ends a session, and changes nothing of the workspace',
  moveSession: 'changes the session, and nothing of the workspace',
  countTokens: 'only looks',
  chatCompletions: 'is in the ledger',
  completions: 'is in the ledger',
  responses: 'is in the ledger',
  messages: 'is in the ledger',
  embeddings: 'is in the ledger',
  rerank: 'is in the ledger',
  reranking: 'is in the ledger',
  imagesGenerations: 'is in the ledger',
  audioTranscriptions: 'is in the ledger',
  audioTranslations: 'is in the ledger',
  uploadFile: 'is for requests, and changes nothing of the workspace',
  deleteFile: 'is for requests, and changes nothing of the workspace',
  createBatch: 'its lines are in the ledger',
  cancelBatch: 'its lines are in the ledger',
}

describe('a route that changes something', () => {
  it('is in the audit log in words, whether it was done or refused, for both APIs and the console', async () => {
    const [operator, console, api] = await Promise.all([
      routesOf('', weir.admin('GET', '/admin/v1/openapi.json')),
      routesOf('/console/api', member('GET', '/console/api/openapi.json')),
      routesOf('/api/v1', weir.call('/openapi.json')),
    ])
    assert.ok(operator.length > 15 && console.length > 2 && api.length > 5)
    const met = new Set<string>()
    for (const route of [...operator, ...console, ...api]) {
      if (unrecorded[route.operationId] !== undefined) {
        met.add(route.operationId)
        continue
      }
      const before = await log()
      const body = Object.values(route.requestBody?.content ?? {})[0]?.example
      const isOperator = operator.includes(route)
      const response = await (isOperator
        ? weir.admin(route.method, route.path, body as object | undefined)
        : member(route.method, route.path, body))
      const text = await response.text()
      const [entry, ...others] = (await log()).filter(({ id }) => id > (before[0]?.id ?? 0))
      assert.ok(entry, `${route.operationId} is not on record: ${response.status} ${text}`)
      assert.equal(others.length, 0, route.operationId)
      assert.equal(entry.outcome, response.ok ? 'done' : 'refused', route.operationId)
      assert.match(entry.actor, isOperator ? /^operator \(token\) from / : / of default from /)
      assert.match(entry.title, /^[A-Z][a-z]+ [a-z]/, 'in words')
    }
    const absent = Object.keys(unrecorded).filter((id) => !met.has(id))
    assert.deepEqual(absent, [], 'there is no such route')
  })
})

describe('what a member does', () => {
  it('is audited with the name of the key or session, and the state before and after', async () => {
    const made = (await (
      await weir.admin('POST', '/admin/v1/keys', { workspace: 'acme', name: 'Ana, laptop' })
    ).json()) as { id: string; key: string }
    const ana = await signIn({ key: made.key })
    const created = await member('POST', '/console/api/keys', { name: 'website' }, ana)
    const { id, key } = (await created.json()) as { id: string; key: string }
    await member('DELETE', `/console/api/keys/${id}`, undefined, ana)
    const [revoked, creation] = await log()
    assert.match(creation?.actor ?? '', /^key Ana, laptop of acme from .*127\.0\.0\.1$/)
    assert.deepEqual(
      [creation?.action, creation?.title, creation?.subject],
      ['createKey', 'Create a key', 'acme website'],
    )
    assert.deepEqual([revoked?.action, revoked?.title, revoked?.subject], ['revokeKey', 'Revoke a key', id])
    const states = [revoked?.before, revoked?.after].map((json) => JSON.parse(json ?? '') as Record<string, unknown>)
    assert.deepEqual(
      states.map(({ name, workspace, revoked: at }) => [name, workspace, at === null]),
      [
        ['website', 'acme', true],
        ['website', 'acme', false],
      ],
    )
    assert.ok(!JSON.stringify(await log()).includes(key))

    const issued = await weir.admin('POST', '/admin/v1/workspaces/acme/console-links')
    const { path } = (await issued.json()) as { path: string }
    const guest = await signIn({ link: path.split('#link=')[1] })
    await member('POST', '/console/api/keys', { name: 'by a guest' }, guest)
    const [byGuest] = await log()
    assert.match(byGuest?.actor ?? '', /^console_[0-9a-f]{8} of acme from /)
    const other = await member('DELETE', `/console/api/keys/${made.id}`)
    assert.equal(other.status, 404)
    const [refused] = await log()
    assert.deepEqual([refused?.outcome, refused?.before], ['refused', null], 'nothing of another workspace')
  })

  it('records that a member ended another session of their own, with its details, but no details of a session of another member', async () => {
    const made = (await (
      await weir.admin('POST', '/admin/v1/keys', { workspace: 'acme', name: 'Ben, laptop' })
    ).json()) as { id: string; key: string }
    const [first] = [await signIn({ key: made.key }), await signIn({ key: made.key })]
    const own = (await (await member('GET', '/console/api/sessions', undefined, first)).json()) as {
      data: readonly { id: string; is_current: boolean }[]
    }
    const other = own.data.find((it) => !it.is_current)?.id ?? assert.fail()
    assert.equal((await member('DELETE', `/console/api/sessions/${other}`)).status, 404)
    assert.equal((await member('DELETE', `/console/api/sessions/${other}`, undefined, first)).status, 200)
    const [ended, refused] = await log()
    assert.match(ended?.actor ?? '', /^key Ben, laptop of acme from /)
    assert.deepEqual(
      [ended?.action, ended?.title, ended?.subject, ended?.outcome, ended?.after],
      ['endSession', 'End a session', other, 'done', null],
    )
    assert.equal((JSON.parse(ended?.before ?? '') as { id: string }).id, other)
    assert.deepEqual([refused?.subject, refused?.outcome, refused?.before], [other, 'refused', null])
  })
})
