import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import Type, { type Static } from 'typebox'
import { modelsSchema, parseCatalog, toModels, type CatalogSource, type Secrets } from './catalog/file.ts'
import { FileMistake, parseCheckedYaml } from './core/checked-yaml.ts'

/** File + environment → one frozen, validated Config. Nothing else reads process.env. */
export interface Config {
  /** The file it came from, if there was one: for messages, and watched for changes of the catalog. */
  readonly file: string | undefined
  readonly host: string
  readonly port: number
  readonly adminHost: string
  readonly adminPort: number
  /** How long streams may go on after a stop was asked for. */
  readonly drainMs: number
  readonly dataDir: string
  readonly operatorToken: string | undefined
  readonly seller: { readonly name: string; readonly abn: string; readonly address: string } | undefined
  readonly requestsPerMinute: number
  readonly unauthenticatedPerMinute: number
  readonly maxBodyBytes: number
  readonly imageHosts: readonly string[]
  readonly logLevel: string
  readonly catalog: CatalogSource
}

/** What the command line may override. */
export interface Overrides {
  readonly config?: string | undefined
  readonly port?: string | undefined
  readonly data?: string | undefined
}

const closed = { additionalProperties: false } as const
const port = (): Type.TInteger => Type.Integer({ minimum: 0, maximum: 65_535 })

/** What fits into an Authorization header and cannot be guessed. */
const TOKEN = /^[!-~]{16,}$/
const TOKEN_RULE = 'at least 16 letters, digits and signs without spaces'

const schema = Type.Object(
  {
    server: Type.Optional(
      Type.Object(
        {
          host: Type.Optional(Type.String({ minLength: 1 })),
          port: Type.Optional(port()),
          admin_host: Type.Optional(Type.String({ minLength: 1 })),
          admin_port: Type.Optional(port()),
          drain_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 3_600_000 })),
          max_body_bytes: Type.Optional(Type.Integer({ minimum: 1024, maximum: 1_073_741_824 })),
        },
        closed,
      ),
    ),
    data_dir: Type.Optional(Type.String({ minLength: 1 })),
    database: Type.Optional(Type.Literal('sqlite')),
    coordination: Type.Optional(Type.Literal('memory')),
    operator_token: Type.Optional(Type.String({ pattern: TOKEN.source, expected: TOKEN_RULE })),
    seller: Type.Optional(
      Type.Object(
        { name: Type.String({ minLength: 1 }), abn: Type.String(), address: Type.Optional(Type.String()) },
        closed,
      ),
    ),
    rate_limit: Type.Optional(
      Type.Object(
        {
          requests_per_minute: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000_000 })),
          unauthenticated_per_minute: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000_000 })),
        },
        closed,
      ),
    ),
    images: Type.Optional(
      Type.Object(
        { allowed_hosts: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { maxItems: 1000 })) },
        closed,
      ),
    ),
    log: Type.Optional(
      Type.Object({ level: Type.Optional(Type.Enum(['debug', 'info', 'warn', 'error', 'silent'])) }, closed),
    ),
    models: Type.Optional(modelsSchema),
    catalog: Type.Optional(Type.String({ minLength: 1 })),
  },
  closed,
)

type FileContent = Static<typeof schema>

export function loadConfig(overrides: Overrides = {}, variables: NodeJS.ProcessEnv = process.env): Config {
  // A variable that is set to nothing is not set: an empty WEIR_HOST must not mean every interface.
  const environment = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ''))
  const named = overrides.config ?? environment['WEIR_CONFIG']
  if (named !== undefined && !existsSync(named)) throw new FileMistake(`${named}: there is no such file`)
  const file = named ?? (existsSync('weir.yaml') ? 'weir.yaml' : undefined)
  const content: FileContent = file === undefined ? {} : readYaml(file).data
  const base = file === undefined ? process.cwd() : dirname(resolve(file))
  const { server, rate_limit: rateLimit, seller } = content
  refuseOtherAdapters(environment)
  return Object.freeze({
    file,
    host: environment['WEIR_HOST'] ?? server?.host ?? '127.0.0.1',
    port: portFrom(overrides.port, '--port') ?? portFrom(environment['WEIR_PORT'], 'WEIR_PORT') ?? server?.port ?? 8080,
    adminHost: server?.admin_host ?? '127.0.0.1',
    adminPort: portFrom(environment['WEIR_ADMIN_PORT'], 'WEIR_ADMIN_PORT') ?? server?.admin_port ?? 8081,
    drainMs: server?.drain_ms ?? 30_000,
    dataDir: dataDir(overrides, environment, content, base),
    operatorToken: tokenFrom(environment['WEIR_OPERATOR_TOKEN']) ?? content.operator_token,
    seller: seller && { name: seller.name, abn: seller.abn, address: seller.address ?? '' },
    requestsPerMinute: rateLimit?.requests_per_minute ?? 600,
    unauthenticatedPerMinute: rateLimit?.unauthenticated_per_minute ?? 60,
    maxBodyBytes: server?.max_body_bytes ?? 20 * 1024 * 1024,
    imageHosts: content.images?.allowed_hosts ?? [],
    logLevel: content.log?.level ?? 'info',
    catalog: catalogSource(file, content, base, (name) => environment[name]),
  })
}

function readYaml(file: string): ReturnType<typeof parseCheckedYaml<typeof schema>> {
  const yaml = parseCheckedYaml(readFileSync(file, 'utf8'), file, schema)
  const { models, catalog } = yaml.data
  if (models && catalog) throw yaml.mistake(['catalog'], 'give either models or catalog, not both')
  const catalogFile = catalog && resolve(dirname(file), catalog)
  if (catalogFile && !existsSync(catalogFile)) throw yaml.mistake(['catalog'], `there is no file ${catalogFile}`)
  return yaml
}

function catalogSource(file: string | undefined, content: FileContent, base: string, secrets: Secrets): CatalogSource {
  if (content.catalog !== undefined) {
    const catalogFile = resolve(base, content.catalog)
    return { file: catalogFile, read: () => parseCatalog(readFileSync(catalogFile, 'utf8'), catalogFile, secrets) }
  }
  if (file === undefined) return { file: undefined, read: () => [] }
  return {
    file,
    read() {
      const yaml = readYaml(file)
      return toModels(yaml.data.models ?? [], yaml, secrets)
    },
  }
}

/** A path in the file is relative to the file; one from outside it, to where the command was typed. */
function dataDir(overrides: Overrides, environment: NodeJS.ProcessEnv, content: FileContent, base: string): string {
  const outside = overrides.data ?? environment['WEIR_DATA_DIR']
  return outside === undefined ? resolve(base, content.data_dir ?? 'data') : resolve(outside)
}

function portFrom(text: string | undefined, source: string): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (text.trim() !== '' && Number.isInteger(value) && value >= 0 && value <= 65_535) return value
  throw new FileMistake(`${source}: must be a port from 0 to 65535, but is "${text}"`)
}

/** A secret, so the message does not repeat it. */
function tokenFrom(text: string | undefined): string | undefined {
  if (text === undefined || TOKEN.test(text)) return text
  throw new FileMistake(`WEIR_OPERATOR_TOKEN: must be ${TOKEN_RULE}`)
}

/** Saying nothing here would run a fleet on one replica's memory. */
function refuseOtherAdapters(environment: NodeJS.ProcessEnv): void {
  const database = environment['WEIR_DATABASE_URL']
  if (database !== undefined && database !== 'sqlite') {
    throw new FileMistake('WEIR_DATABASE_URL: this version keeps its data in sqlite only; unset it')
  }
  const coordination = environment['WEIR_REDIS_URL']
  if (coordination !== undefined && coordination !== 'memory') {
    throw new FileMistake('WEIR_REDIS_URL: this version coordinates in memory only; unset it')
  }
}
