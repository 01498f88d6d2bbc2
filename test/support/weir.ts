import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { stringify } from 'yaml'
import { startService, type Service } from '../../src/compose.ts'
import { FIRST_WORKSPACE } from '../../src/compose/open-parts.ts'
import { loadConfig } from '../../src/config.ts'
import { openSettledStore } from '../../src/cli/settled-store.ts'
import type { DatabaseChoice } from '../../src/store/database-choice.ts'
import { usageQuery } from '../../src/billing/usage/views.ts'
import type { LedgerRow } from '../../src/ledger/rows.ts'
import { openSqliteHere } from '../../src/store/sqlite/in-this-thread.ts'
import { within } from './waiting.ts'

/** The real service on real sockets and a real data directory, for tests. */
export interface TestWeir {
  readonly service: Service
  readonly base: string
  readonly adminUrl: string
  readonly operatorToken: string
  readonly dataDir: string
  readonly configFile: string
  readonly key: string
  /** The name of the key's workspace. */
  readonly workspace: string
  /** A request to the public listener, with the key unless told otherwise. */
  call(path: string, init?: RequestInit & { key?: string | null }): Promise<Response>
  chat(body: object, init?: RequestInit & { key?: string | null }): Promise<Response>
  admin(method: string, path: string, body?: object): Promise<Response>
  /** The rows of the first workspace, as another process reads them. */
  ledger(): Promise<readonly LedgerRow[]>
  /** Writes the file again; `reload` makes the service read it now. */
  writeConfig(config: object): void
  reload(): Promise<Response>
  stop(): Promise<void>
}

export const OPERATOR_TOKEN = 'test-operator-token-0123456789'

/** A model entry as weir.yaml has it, in front of the given engine addresses. */
export function modelEntry(urls: readonly string[], changes: object = {}): object {
  return {
    id: 'meta/test-8b',
    aliases: ['test-8b'],
    name: 'Test 8B',
    categories: ['llm'],
    context_length: 8192,
    max_completion_tokens: 4096,
    default_max_tokens: 256,
    supported_parameters: [
      'temperature',
      'top_p',
      'stop',
      'seed',
      'tools',
      'tool_choice',
      'response_format',
      'n',
      'logprobs',
    ],
    pricing: { input_per_million: '0.20', output_per_million: '0.60', cached_input_per_million: '0.05' },
    serverless: {
      engine: { kind: 'openai', urls, model: 'engine-name' },
      limits: { token_budget: 100_000, max_concurrent_requests: 8, max_queue_depth: 16, max_wait_ms: 5000 },
    },
    ...changes,
  }
}

const removeFolder = (folder: string): void => rmSync(folder, { recursive: true, force: true })

/** A test file fails if it ends without having stopped every service, which removes its folder. */
const folders = new Set<string>()
process.once('exit', () => {
  for (const folder of folders) {
    if (!existsSync(folder)) continue
    removeFolder(folder)
    process.stderr.write(`A test left ${folder} behind: it did not call stop().\n`)
    process.exitCode = 1
  }
})

/** A database without rows. Creating its tables takes ten times as long as copying it. */
let emptyDatabase: string | undefined

function copyEmptyDatabase(dataDir: string): void {
  if (emptyDatabase === undefined) {
    const folder = mkdtempSync(join(tmpdir(), 'weir-empty-'))
    process.once('exit', () => removeFolder(folder))
    void openSqliteHere({ dataDir: folder, exclusive: false }).close()
    emptyDatabase = join(folder, 'weir.db')
  }
  mkdirSync(dataDir, { mode: 0o700 })
  const file = join(dataDir, 'weir.db')
  copyFileSync(emptyDatabase, file)
  using copy = new DatabaseSync(file)
  copy.exec('UPDATE data_directory SET id = lower(hex(randomblob(16)))')
}

export interface StartOptions {
  /** The folder that its own folder is made in. */
  readonly disk?: string | undefined
  /** A reload does not wait to see whether the file is still being written. */
  readonly reloadsAtOnce?: boolean
}

/** `variables`: of its environment, besides the usual. */
export async function startWeir(
  config: object,
  variables: NodeJS.ProcessEnv = {},
  { disk = tmpdir(), reloadsAtOnce = false }: StartOptions = {},
): Promise<TestWeir> {
  using starting = new DisposableStack()
  const folder = starting.adopt(mkdtempSync(join(disk, 'weir-test-')), removeFolder)
  folders.add(folder)
  const configFile = join(folder, 'weir.yaml')
  const dataDir = join(folder, 'data')
  const writeConfig = (content: object): void =>
    writeFileSync(configFile, stringify({ server: { port: 0, admin_port: 0 }, log: { level: 'silent' }, ...content }))
  writeConfig(config)
  const environment = { WEIR_OPERATOR_TOKEN: OPERATOR_TOKEN, ENGINE_KEY: 'engine-secret', ...variables }
  const loaded = loadConfig({ config: configFile, data: dataDir }, environment)
  if (loaded.databaseUrl === undefined) copyEmptyDatabase(dataDir)
  const service = await startService(
    reloadsAtOnce ? { ...loaded, catalog: { ...loaded.catalog, file: undefined } } : loaded,
  )
  // Its stop() removes the folder now.
  starting.move()
  const base = `${service.url}/api/v1`
  const key = service.firstKey ?? ''

  const call: TestWeir['call'] = (path, { key: useKey = key, ...init } = {}) => {
    const headers = new Headers(init.headers)
    if (useKey !== null) headers.set('authorization', `Bearer ${useKey}`)
    return fetch(path.startsWith('http') ? path : base + path, { ...init, headers })
  }
  const admin: TestWeir['admin'] = (method, path, body) =>
    fetch(service.adminUrl + path, {
      method,
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })

  return {
    service,
    base,
    adminUrl: service.adminUrl,
    operatorToken: OPERATOR_TOKEN,
    dataDir,
    configFile,
    key,
    workspace: FIRST_WORKSPACE,
    call,
    chat: (body, init) =>
      call('/chat/completions', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'meta/test-8b', messages: [{ role: 'user', content: 'Hi' }], ...body }),
        ...init,
      }),
    admin,
    ledger: () => ledgerOf({ dataDir }),
    writeConfig,
    reload: () => admin('POST', '/admin/v1/catalog/reload'),
    async stop() {
      // A request that never ends would keep it from stopping, and the test from failing.
      await within(60_000, 'the service stops', service.stop())
      removeFolder(folder)
    },
  }
}

/** The rows of a workspace, by default the first one, as another process reads them. */
export async function ledgerOf(choice: DatabaseChoice, workspaceId?: string): Promise<readonly LedgerRow[]> {
  const store = await openSettledStore(choice)
  try {
    return await store.usage(usageQuery(workspaceId ?? (await store.workspaces())[0]?.id ?? '', {}))
  } finally {
    await store.close()
  }
}

/** Starts, runs and stops, whatever happens. */
export async function withWeir(config: object, work: (weir: TestWeir) => Promise<void>): Promise<void> {
  const weir = await startWeir(config)
  try {
    await work(weir)
  } finally {
    await weir.stop()
  }
}

/** The data of every event of a stream, in order. */
export async function readEvents(response: Response): Promise<string[]> {
  const text = await response.text()
  return text
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => event.slice('data: '.length))
}
