import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { openSettledStore } from '../../src/cli/settled-store.ts'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import type { Route } from '../../src/server/route.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import type { Role } from '../../src/shared/roles.ts'
import { OPERATOR, openSessions } from '../../src/workspaces/sessions/sessions.ts'
import { everyAdminRoute, everyPublicRoute } from '../support/openapi.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

/** What each role may do, route by route. The lists here are the rule; the tables in src have to match them. */

let engine: ScriptedEngine
let weir: TestWeir
const cookies = new Map<string, string>()

before(async () => {
  engine = await scriptedEngine()
  weir = await startWeir({
    rate_limit: { requests_per_minute: 100_000, unauthenticated_per_minute: 100_000 },
    models: [modelEntry([engine.url])],
  })
  const store = await openSettledStore({ dataDir: weir.dataDir })
  const [workspace] = await store.workspaces()
  const open = async (owner: string, roles: readonly Role[], hashOf?: (secret: string) => string): Promise<string> => {
    const subject = roles.join(' ')
    const person = { id: `person_${subject}`, issuer: 'https://id', subject, name: 'Ada', email: 'ada@example.com' }
    const held = roles.map((role) => (owner === OPERATOR ? { role } : { role, workspaceId: owner }))
    const sessions = openSessions(store, systemClock, memoryChanges(), hashOf)
    const who = { owner, keyHash: null, address: '::1', person: { person, roles: held, ms: 3_600_000 } }
    return (await sessions.open(who)).token
  }
  const withToken = (secret: string): string => createHmac('sha256', weir.operatorToken).update(secret).digest('hex')
  for (const roles of [['operator'], ['finance'], ['viewer'], ['finance', 'viewer'], []] as const) {
    cookies.set(roles.join(' and '), `weir_operator=${await open(OPERATOR, roles, withToken)}`)
  }
  for (const role of ['member', 'workspace_admin'] as const) {
    cookies.set(role, `weir_session=${await open(workspace?.id ?? '', [role])}`)
  }
  await store.close()
})
after(async () => {
  await weir.stop()
  await engine.close()
})

/** Whether the role is what the request was refused for. */
async function isRefused(base: string, { method, path, operation }: Route, role: string): Promise<boolean> {
  const filled = Object.entries(operation?.parameters ?? {}).reduce(
    (text, [name, { example }]) => text.replace(`{${name}}`, example).replace(`{${name}+}`, example),
    path,
  )
  const response = await fetch(base + filled, {
    method,
    headers: { cookie: cookies.get(role) ?? '', 'x-weir-console': '1', 'content-type': 'application/json' },
    ...(method === 'GET' ? {} : { body: '{}' }),
  })
  if (response.status !== 403) {
    await response.body?.cancel()
    return false
  }
  const { error } = (await response.json()) as { error: { code: string } }
  return error.code === 'role_not_allowed'
}

const nameOf = ({ method, path, operation }: Route): string => operation?.id ?? `${method} ${path}`

/** The routes that the role is refused. */
async function refusedTo(role: string, base: string, routes: readonly Route[]): Promise<readonly string[]> {
  const refused = []
  for (const route of routes) if (await isRefused(base, route, role)) refused.push(nameOf(route))
  return refused.toSorted()
}

const operatorRoutes = everyAdminRoute().filter(({ access }) => access === 'operator')
const idsOf = (routes: readonly Route[]): readonly string[] => routes.map(nameOf).toSorted()
const without = (routes: readonly Route[], allowed: readonly string[]): readonly string[] =>
  idsOf(routes).filter((id) => !allowed.includes(id))

/** Requests that only read, although they are not GET. */
const reading = ['previewCatalog', 'previewInvoice', 'simulateLimits']
const viewer = [...idsOf(operatorRoutes.filter(({ method }) => method === 'GET')), ...reading]
const finance = [
  'usageReport latencyReport listRequests listUsage listCacheUse listRefused getUsage',
  'listInvoices getInvoice previewInvoice listDrafts reconcile listWorkspaces getWorkspace listWorkspacePrices',
  'issueInvoice issueDrafts creditInvoice recordPayment removePayment sendInvoice',
].flatMap((ids) => ids.split(' '))

describe('the operator API', () => {
  it('is open to operators, and to the token, as a whole', async () => {
    assert.ok(operatorRoutes.length > 45)
    assert.deepEqual(await refusedTo('operator', weir.adminUrl, operatorRoutes), [])
    assert.equal((await weir.admin('GET', '/admin/v1/workspaces')).status, 200)
  })

  for (const [role, allowed] of [
    ['viewer', viewer],
    ['finance', finance],
    ['finance and viewer', [...viewer, ...finance]],
    ['', []],
  ] as const) {
    it(`refuses people with ${role === '' ? 'no role' : `the role ${role}`} everything else`, async () => {
      const known = idsOf(operatorRoutes)
      assert.deepEqual(
        allowed.filter((id) => !known.includes(id)),
        [],
        'a route that does not exist',
      )
      assert.deepEqual(await refusedTo(role, weir.adminUrl, operatorRoutes), without(operatorRoutes, allowed))
    })
  }

  it('names the role that is needed, and does not record a refused request as an action', async () => {
    const entries = async (): Promise<number> => {
      const response = await weir.admin('GET', '/admin/v1/audit-log?limit=1')
      return ((await response.json()) as { data: { id: number }[] }).data[0]?.id ?? 0
    }
    const last = await entries()
    const response = await fetch(`${weir.adminUrl}/admin/v1/workspaces`, {
      method: 'POST',
      headers: { cookie: cookies.get('viewer') ?? '', 'x-weir-console': '1', 'content-type': 'application/json' },
      body: '{"name":"by a viewer"}',
    })
    const { error } = (await response.json()) as { error: object }
    assert.deepEqual(
      [response.status, error],
      [
        403,
        {
          message: 'This needs the role operator. You have the role viewer.',
          type: 'permission_error',
          param: null,
          code: 'role_not_allowed',
        },
      ],
    )
    assert.equal(await entries(), last)
  })
})

describe('the console of a workspace', () => {
  const routes = everyPublicRoute().filter(({ access }) => access === 'session' || access === 'key')

  it('is open to its administrators as a whole', async () => {
    assert.ok(routes.length > 25)
    assert.deepEqual(await refusedTo('workspace_admin', weir.service.url, routes.filter(isNotSigningOut)), [])
  })

  it('refuses members everything that changes the workspace, and invoices', async () => {
    const refused = await refusedTo('member', weir.service.url, routes.filter(isNotSigningOut))
    const changing = routes.filter(
      (route) => route.method !== 'GET' && !isInference(route) && !isAboutTheSession(route),
    )
    assert.ok(changing.length >= 3)
    assert.deepEqual(refused, [...idsOf(changing), 'invoice', 'invoiceLine', 'invoices'].toSorted())
  })

  it('lets every member sign out', async () => {
    const signOut = routes.find((route) => !isNotSigningOut(route))
    assert.ok(signOut)
    for (const role of ['member', 'workspace_admin']) {
      assert.equal(await isRefused(weir.service.url, signOut, role), false)
      const after = await fetch(`${weir.service.url}/console/api/session`, {
        headers: { cookie: cookies.get(role) ?? '' },
      })
      assert.equal(after.status, 401)
    }
  })
})

const isInference = (route: Route): boolean =>
  ('endpoint' in route && route.endpoint !== undefined) || /^\/api\/v1\/(files|batches)(\/|$)/.test(route.path)
const isNotSigningOut = ({ operation }: Route): boolean => operation?.id !== 'signOut'
const isAboutTheSession = ({ path }: Route): boolean => path.startsWith('/console/api/session')
