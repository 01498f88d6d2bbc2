import { Pool, type Dispatcher } from 'undici'
import type { WeirProcess } from './weir-process.ts'

/** Every call that a page of either console makes for a list or a report. */
export interface ConsoleCall {
  readonly name: string
  /** ms until its answer was there. */
  call(): Promise<number>
}

/** ms of a file until its first bytes were there. */
type Awaited = 'answer' | 'first byte'

const DAY_MS = 86_400_000

export async function consoleCalls(weir: WeirProcess, operatorToken: string): Promise<readonly ConsoleCall[]> {
  const member = await memberOf(weir)
  const operator = listener(weir.operator, { authorization: `Bearer ${operatorToken}` })
  const date = (daysBack: number): string => new Date(Date.now() - daysBack * DAY_MS).toISOString().slice(0, 10)
  const since = (daysBack: number): string => `from=${date(daysBack)}&to=${date(0)}`
  const { data: newest } = await member.get<Page>('/console/api/requests?limit=25')
  const requestId = newest[0]?.request_id ?? ''
  const { data: keys } = await member.get<Page>('/console/api/keys')
  const keyNamed = (name: string): string => keys.find((it) => it.name === name)?.id ?? ''
  const { data: invoices } = await member.get<Page>('/console/api/invoices')
  const model = newest[0]?.model ?? ''
  const halfAYearBack = `${Date.now() - 180 * DAY_MS}_x`
  /** Who the reports are about: everybody, a model or key with many requests, or one with a request in a week. */
  const filters = [
    ['', ''],
    [' of a model', `&group_by=key&model=${encodeURIComponent(model)}`],
    [' of a key', `&key=${keyNamed('key 1')}`],
    [' of a seldom key', `&key=${keyNamed('seldom')}`],
    [' of a seldom model', `&group_by=key&model=${encodeURIComponent('bench/model-19')}`],
  ] as const

  const memberPaths: readonly (readonly [name: string, path: string, until?: Awaited])[] = [
    ['session', '/console/api/session'],
    ['keys with their usage', '/console/api/keys'],
    ['usage by model, 30 days', `/console/api/reports/usage?${since(29)}`],
    ['usage by model, today', `/console/api/reports/usage?${since(0)}`],
    ['usage by model, 90 days', `/console/api/reports/usage?${since(89)}`],
    ['usage by key, 90 days', `/console/api/reports/usage?${since(89)}&group_by=key`],
    ['usage by key, 400 days', `/console/api/reports/usage?${since(399)}&group_by=key`],
    ...filters.flatMap(([whose, filter]) =>
      [1, 7, 30, 90, 400].map((days): [string, string] => [
        `times and failures${whose}, ${daysText(days)}`,
        `/console/api/reports/latency?${since(days - 1)}${filter}`,
      ]),
    ),
    ['times and failures by key, 90 days', `/console/api/reports/latency?${since(89)}&group_by=key`],
    ...filters
      .slice(1)
      .map(([whose, filter]): [string, string] => [
        `usage${whose}, 90 days`,
        `/console/api/reports/usage?${since(89)}${filter}`,
      ]),
    ['month, pace and forecast', '/console/api/reports/month'],
    ['requests, first page', '/console/api/requests?limit=25'],
    ['requests, half a year back', `/console/api/requests?limit=25&before=${halfAYearBack}`],
    ['requests that failed', '/console/api/requests?limit=25&outcome=failed'],
    ['requests of a model', `/console/api/requests?limit=25&model=${encodeURIComponent(model)}`],
    ['requests of a key', `/console/api/requests?limit=25&key=${keyNamed('key 1')}`],
    ['requests of a seldom key', `/console/api/requests?limit=25&key=${keyNamed('seldom')}`],
    ['requests of a seldom model', '/console/api/requests?limit=25&model=bench/model-19'],
    ['failed requests of a model', `/console/api/requests?limit=25&outcome=failed&model=${encodeURIComponent(model)}`],
    ['requests of a model that has none', '/console/api/requests?limit=25&model=none'],
    ['one request by its id', `/api/v1/usage/${requestId}`],
    ['API: the latest 100 rows', `/api/v1/usage?from=${date(1)}&limit=100`],
    ['API: a month by day', `/api/v1/usage?${since(30)}&group_by=day&limit=100`],
    ['API: the year by model', `/api/v1/usage?${since(365)}&group_by=model`],
    ['API: the year by key', `/api/v1/usage?${since(365)}&group_by=key`],
    ['export of a year, first byte', `/api/v1/usage?${since(365)}&format=csv`, 'first byte'],
    ['export of a key, first byte', `/api/v1/usage?${since(89)}&format=csv&key=${keyNamed('key 1')}`, 'first byte'],
    ['API: rows of a seldom key, 90 days', `/api/v1/usage?${since(89)}&key=${keyNamed('seldom')}`],
    ['invoices', '/console/api/invoices'],
    ['one invoice', `/console/api/invoices/${invoices[0]?.number}`],
    ['API: rows of a model that has none, a year', `/api/v1/usage?${since(365)}&model=none`],
    ['rows of a line of an invoice', `/api/v1/usage?${since(60)}&model=${encodeURIComponent(model)}&limit=100`],
  ]
  const operatorPaths: typeof memberPaths = [
    ['workspaces', '/admin/v1/workspaces'],
    ['keys of all', '/admin/v1/keys'],
    ['valid keys of a workspace', '/admin/v1/keys?workspace=workspace-7&state=valid'],
    ...(['workspace', 'model', 'key'] as const).flatMap((group) =>
      [1, 7, 30, 90].map((days): [string, string] => [
        `usage of all by ${group}, ${daysText(days)}`,
        `/admin/v1/reports/usage?${since(days - 1)}&group_by=${group}`,
      ]),
    ),
    ['usage of all by key, 400 days', `/admin/v1/reports/usage?${since(399)}&group_by=key`],
    ['usage of a workspace, 90 days', `/admin/v1/reports/usage?${since(89)}&group_by=key&workspace=workspace-7`],
    ['requests of a workspace', '/admin/v1/requests?workspace=workspace-7'],
    ['sums of all by workspace, a year', `/admin/v1/usage?${since(365)}&group_by=workspace`],
    ['sums of all by key, a year, first page', `/admin/v1/usage?${since(365)}&group_by=key`],
    ['one request by its id', `/admin/v1/usage/${requestId}`],
    ['invoices', '/admin/v1/invoices'],
    ['invoices of a workspace', '/admin/v1/invoices?workspace=workspace-7'],
    ['audit log', '/admin/v1/audit-log'],
    ['audit log, deep', '/admin/v1/audit-log?before=5000'],
    ['queues', '/admin/v1/queues'],
    ['engines', '/admin/v1/engines'],
    ['replicas', '/admin/v1/replicas'],
  ]
  return [
    ...memberPaths.map(([name, path, until]) => ({ name: `member: ${name}`, call: () => member.time(path, until) })),
    ...operatorPaths.map(([name, path]) => ({ name: `operator: ${name}`, call: () => operator.time(path) })),
    {
      name: 'operator: preview of a month',
      call: () =>
        operator.time('/admin/v1/invoices/preview', 'answer', {
          workspace: 'workspace-7',
          period: date(0).slice(0, 7),
        }),
    },
    {
      name: 'operator: other limits on the last 24 hours',
      call: () =>
        operator.time('/admin/v1/queues/simulate', 'answer', {
          lane: model,
          limits: { token_budget: 16_384, max_concurrent_requests: 4, max_queue_depth: 100, max_wait_ms: 60_000 },
          hours: 24,
          tokens_per_second: 60,
        }),
    },
  ]
}

const daysText = (days: number): string => (days === 1 ? 'today' : `${days} days`)

interface Page {
  readonly data: readonly {
    readonly id: string
    readonly name: string | null
    readonly request_id: string
    readonly model: string
    readonly number: string
  }[]
}

interface Listener {
  get<Answer>(path: string): Promise<Answer>
  time(path: string, until?: Awaited, body?: object): Promise<number>
}

async function memberOf(weir: WeirProcess): Promise<Listener> {
  const headers = { 'content-type': 'application/json', 'x-weir-console': '1' }
  const signedIn = await fetch(`${weir.origin}/console/api/session`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ key: weir.key }),
  })
  if (!signedIn.ok) throw new Error(await signedIn.text())
  return listener(weir.origin, { cookie: signedIn.headers.getSetCookie().join('; ').split(';')[0] ?? '' })
}

function listener(origin: string, credentials: Record<string, string>): Listener {
  const pool = new Pool(origin, { connections: 1 })

  async function ask(path: string, body?: object): Promise<Dispatcher.ResponseData> {
    const headers = { ...credentials, 'content-type': 'application/json', 'x-weir-console': '1' }
    const sent = body ? { method: 'POST' as const, body: JSON.stringify(body) } : { method: 'GET' as const }
    const response = await pool.request({ path, headers, ...sent })
    if (response.statusCode !== 200) throw new Error(`${path}: ${await response.body.text()}`)
    return response
  }

  return {
    get: async (path) => (await (await ask(path)).body.json()) as never,
    async time(path, until = 'answer', body) {
      const startedAtMs = performance.now()
      const response = await ask(path, body)
      if (until === 'first byte') {
        await response.body[Symbol.asyncIterator]().next()
        const ms = performance.now() - startedAtMs
        response.body.destroy()
        return ms
      }
      await response.body.text()
      return performance.now() - startedAtMs
    },
  }
}
