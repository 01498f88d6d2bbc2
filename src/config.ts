import { existsSync, readFileSync } from 'node:fs'
import { totalmem } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { getHeapStatistics } from 'node:v8'
import Type, { type Static } from 'typebox'
import { modelsSchema, parseCatalog, toModels, type CatalogSource, type Secrets } from './catalog/file.ts'
import { defaultCatalog } from './embedded/service/default-catalog.ts'
import { memoryToParse } from './core/json/json-body.ts'
import { parseAbn } from './core/money/abn.ts'
import { ConfigError, parseCheckedYaml } from './core/checked-yaml.ts'
import type { Seller } from './core/money/invoice-document.ts'
import type { ImageLimits } from './core/image-header.ts'

/** Reads the file and the environment into one frozen, validated Config. Nothing else reads process.env. */
export interface Config {
  /** The file it was read from, if any. */
  readonly file: string | undefined
  readonly host: string
  readonly port: number
  readonly adminHost: string
  readonly adminPort: number
  /** How long requests may run on after a shutdown begins. */
  readonly drainMs: number
  readonly dataDir: string
  readonly modelsDir: string
  /** For downloads: proxies, the model hub's address and token, npm's configuration. */
  readonly environment: NodeJS.ProcessEnv
  readonly operatorToken: string | undefined
  /** Who issues the invoices. */
  readonly seller: Seller | undefined
  readonly requestsPerMinute: number
  readonly unauthenticatedPerMinute: number
  readonly maxBodyBytes: number
  /** For the bodies and answers of all requests in flight. */
  readonly maxRequestMemoryBytes: number
  readonly imageHosts: readonly string[]
  readonly imageLimits: ImageLimits
  /**
   * Where images are stored when a caller asks for a link; undefined when links are off. A function, so that only
   * commands that need the secrets look them up.
   */
  files(): FilesConfig | undefined
  readonly audio: {
    readonly maxUploadBytes: number
    /** The total size of all uploads on disk. */
    readonly maxSpoolBytes: number
  }
  readonly logLevel: string
  readonly catalog: CatalogSource
}

type FilesConfig =
  | {
      readonly kind: 'local'
      /** undefined means the address of the public listener. */
      readonly publicUrl: string | undefined
      readonly linkTtlSeconds: number
      readonly maxBytes: number
    }
  | {
      readonly kind: 's3'
      readonly endpoint: string
      readonly bucket: string
      readonly region: string
      readonly accessKey: string
      readonly secretKey: string
      readonly prefix: string
      readonly publicUrl: string | undefined
      readonly linkTtlSeconds: number
    }

/** Options of the command line. */
interface Overrides {
  readonly config?: string | undefined
  readonly port?: string | undefined
  readonly data?: string | undefined
}

const closed = { additionalProperties: false } as const
const MAX_UPLOAD_BYTES = 25 * 2 ** 20
const MAX_SPOOL_BYTES = 8 * 2 ** 30
const MAX_BODY_BYTES = 20 * 2 ** 20
const port = (): Type.TInteger => Type.Integer({ minimum: 0, maximum: 65_535 })

/** Fits into an Authorization header and is hard to guess. */
const TOKEN = /^[!-~]{16,}$/
const TOKEN_RULE = 'at least 16 letters, digits and punctuation marks, without spaces'

const webAddress = (): Type.TString =>
  Type.String({ pattern: '^https?://[^/?#@\\s]+(/[^?#\\s]*)?$', expected: 'an http:// or https:// address' })

const files = Type.Union([
  Type.Object(
    {
      kind: Type.Literal('local'),
      public_url: Type.Optional(webAddress()),
      link_ttl_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 31_536_000 })),
      max_bytes: Type.Optional(Type.Integer({ minimum: 1_048_576, maximum: Number.MAX_SAFE_INTEGER })),
    },
    closed,
  ),
  Type.Object(
    {
      kind: Type.Literal('s3'),
      endpoint: webAddress(),
      bucket: Type.String({
        pattern: '^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$',
        expected: 'a name of 3 to 63 lowercase letters, digits, "." and "-"',
      }),
      region: Type.String({ pattern: '^[a-zA-Z0-9-]{1,64}$', expected: 'a region, such as ap-southeast-2' }),
      access_key_env: Type.String({ minLength: 1, maxLength: 128 }),
      secret_key_env: Type.String({ minLength: 1, maxLength: 128 }),
      prefix: Type.Optional(
        Type.String({
          pattern: '^[a-zA-Z0-9._-][a-zA-Z0-9._/-]{0,199}$',
          expected: 'a prefix for file names, such as images/',
        }),
      ),
      public_url: Type.Optional(webAddress()),
      // S3 signatures (version 4) are valid for a week at most.
      link_ttl_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 604_800 })),
    },
    closed,
  ),
])

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
          max_request_memory_bytes: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
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
        {
          name: Type.String({ minLength: 1 }),
          abn: Type.String(),
          address: Type.Optional(Type.String()),
          payment_terms_days: Type.Optional(Type.Integer({ minimum: 0, maximum: 365 })),
          payment_details: Type.Optional(Type.String({ maxLength: 1000 })),
          public_url: Type.Optional(webAddress()),
        },
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
        {
          allowed_hosts: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { maxItems: 1000 })),
          max_bytes: Type.Optional(Type.Integer({ minimum: 1024, maximum: 1_073_741_824 })),
          max_side_px: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535 })),
        },
        closed,
      ),
    ),
    files: Type.Optional(files),
    audio: Type.Optional(
      Type.Object(
        {
          max_upload_bytes: Type.Optional(Type.Integer({ minimum: 1024, maximum: 1_073_741_824 })),
          max_spool_bytes: Type.Optional(Type.Integer({ minimum: 1024, maximum: 1_099_511_627_776 })),
        },
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

/** A dumb terminal cannot move its cursor. */
export function isDumbTerminal(variables: NodeJS.ProcessEnv = process.env): boolean {
  return variables['TERM'] === 'dumb'
}

export function loadConfig(overrides: Overrides = {}, variables: NodeJS.ProcessEnv = process.env): Config {
  // An empty variable counts as unset: an empty WEIR_HOST must not mean every interface.
  const environment = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ''))
  const named = overrides.config ?? environment['WEIR_CONFIG']
  if (named !== undefined && !existsSync(named)) throw new ConfigError(`${named} does not exist`)
  const file = named ?? (existsSync('weir.yaml') ? 'weir.yaml' : undefined)
  const yaml = file === undefined ? undefined : readYaml(file)
  const content: FileContent = yaml?.data ?? {}
  const base = file === undefined ? process.cwd() : dirname(resolve(file))
  const { server, rate_limit: rateLimit, seller } = content
  refuseOtherAdapters(environment)
  const host = environment['WEIR_HOST'] ?? server?.host ?? '127.0.0.1'
  const directory = dataDir(overrides, environment, content, base)
  return Object.freeze({
    file,
    host,
    port: portFrom(overrides.port, '--port') ?? portFrom(environment['WEIR_PORT'], 'WEIR_PORT') ?? server?.port ?? 8080,
    adminHost: server?.admin_host ?? '127.0.0.1',
    adminPort: portFrom(environment['WEIR_ADMIN_PORT'], 'WEIR_ADMIN_PORT') ?? server?.admin_port ?? 8081,
    drainMs: server?.drain_ms ?? 30_000,
    dataDir: directory,
    modelsDir: join(directory, 'models'),
    environment,
    operatorToken: tokenFrom(environment['WEIR_OPERATOR_TOKEN']) ?? content.operator_token,
    seller: seller && sellerFrom(seller),
    requestsPerMinute: rateLimit?.requests_per_minute ?? 600,
    unauthenticatedPerMinute: rateLimit?.unauthenticated_per_minute ?? 60,
    maxBodyBytes: server?.max_body_bytes ?? MAX_BODY_BYTES,
    maxRequestMemoryBytes: server?.max_request_memory_bytes ?? requestMemory(server?.max_body_bytes),
    imageHosts: content.images?.allowed_hosts ?? [],
    imageLimits: {
      maxBytes: content.images?.max_bytes ?? 20 * 1024 * 1024,
      maxSidePx: content.images?.max_side_px ?? 8192,
    },
    files: () => yaml && filesFrom(yaml, host, (name) => environment[name]),
    audio: {
      maxUploadBytes: content.audio?.max_upload_bytes ?? MAX_UPLOAD_BYTES,
      maxSpoolBytes: content.audio?.max_spool_bytes ?? MAX_SPOOL_BYTES,
    },
    logLevel: content.log?.level ?? 'info',
    catalog: catalogSource(file, content, base, (name) => environment[name]),
  })
}

function readYaml(file: string): ReturnType<typeof parseCheckedYaml<typeof schema>> {
  const yaml = parseCheckedYaml(readFileSync(file, 'utf8'), file, schema)
  const { models, catalog, seller } = yaml.data
  if (seller && parseAbn(seller.abn) === undefined) {
    throw yaml.errorAt(['seller', 'abn'], `must be an 11-digit ABN with correct check digits, but is "${seller.abn}"`)
  }
  if (models && catalog) throw yaml.errorAt(['catalog'], 'give either models or catalog, not both')
  const { max_upload_bytes: upload = MAX_UPLOAD_BYTES, max_spool_bytes: spool = MAX_SPOOL_BYTES } =
    yaml.data.audio ?? {}
  if (spool < upload) throw yaml.errorAt(['audio', 'max_spool_bytes'], `must be at least max_upload_bytes (${upload})`)
  const { max_body_bytes: body = MAX_BODY_BYTES, max_request_memory_bytes: memory = Infinity } = yaml.data.server ?? {}
  if (memory < leastRequestMemory(body)) {
    throw yaml.errorAt(
      ['server', 'max_request_memory_bytes'],
      `must be at least ${leastRequestMemory(body)}, so that a workspace can send a body of max_body_bytes (${body})`,
    )
  }
  const catalogFile = catalog && resolve(dirname(file), catalog)
  if (catalogFile && !existsSync(catalogFile)) throw yaml.errorAt(['catalog'], `${catalogFile} does not exist`)
  return yaml
}

/** Enough for the largest body, which one workspace must be able to send with its half. */
function leastRequestMemory(maxBodyBytes: number): number {
  return 2 * memoryToParse(maxBodyBytes)
}

/** A quarter of the memory that the process may use, and half of what V8 may, because parsed bodies are in its heap. */
function requestMemory(maxBodyBytes = MAX_BODY_BYTES): number {
  const machine = Math.min(totalmem(), process.constrainedMemory() || Infinity)
  const allowed = Math.min(machine / 4, getHeapStatistics().heap_size_limit / 2)
  return Math.max(Math.floor(allowed), leastRequestMemory(maxBodyBytes))
}

function catalogSource(file: string | undefined, content: FileContent, base: string, secrets: Secrets): CatalogSource {
  if (content.catalog !== undefined) {
    const catalogFile = resolve(base, content.catalog)
    return { file: catalogFile, read: () => parseCatalog(readFileSync(catalogFile, 'utf8'), catalogFile, secrets) }
  }
  if (file === undefined) {
    return { file: undefined, read: () => parseCatalog(defaultCatalog(), 'the default catalog', secrets) }
  }
  return {
    file,
    read() {
      const yaml = readYaml(file)
      return toModels(yaml.data.models ?? [], yaml, secrets)
    },
  }
}

function filesFrom(yaml: ReturnType<typeof readYaml>, host: string, secrets: Secrets): FilesConfig | undefined {
  const { files } = yaml.data
  if (!files) return undefined
  const publicUrl = files.public_url
  const linkTtlSeconds = files.link_ttl_seconds ?? 3600
  if (files.kind === 'local') {
    if (publicUrl === undefined && (host === '0.0.0.0' || host === '::')) {
      throw yaml.errorAt(
        ['files', 'public_url'],
        `is required when the service listens on every address (${host}): links need a host name`,
      )
    }
    return { kind: 'local', publicUrl, linkTtlSeconds, maxBytes: files.max_bytes ?? 10 * 1024 ** 3 }
  }
  const secret = (key: 'access_key_env' | 'secret_key_env'): string => {
    const value = secrets(files[key])
    if (value === undefined) {
      throw yaml.errorAt(['files', key], `the environment variable ${files[key]} is not set`)
    }
    return value
  }
  return {
    kind: 's3',
    endpoint: files.endpoint,
    bucket: files.bucket,
    region: files.region,
    accessKey: secret('access_key_env'),
    secretKey: secret('secret_key_env'),
    prefix: files.prefix ?? '',
    publicUrl,
    linkTtlSeconds,
  }
}

function sellerFrom(seller: NonNullable<FileContent['seller']>): Seller {
  return {
    name: seller.name,
    abn: parseAbn(seller.abn) ?? '',
    address: seller.address ?? '',
    paymentDays: seller.payment_terms_days ?? 14,
    paymentDetails: seller.payment_details ?? '',
    publicUrl: seller.public_url?.replace(/\/$/, ''),
  }
}

/** A path in the file is relative to the file; any other path is relative to the working directory. */
function dataDir(overrides: Overrides, environment: NodeJS.ProcessEnv, content: FileContent, base: string): string {
  const override = overrides.data ?? environment['WEIR_DATA_DIR']
  return override === undefined ? resolve(base, content.data_dir ?? 'data') : resolve(override)
}

function portFrom(text: string | undefined, source: string): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (text.trim() !== '' && Number.isInteger(value) && value >= 0 && value <= 65_535) return value
  throw new ConfigError(`${source}: must be a port from 0 to 65535, but is "${text}"`)
}

/** The message does not repeat the token, because it is a secret. */
function tokenFrom(text: string | undefined): string | undefined {
  if (text === undefined || TOKEN.test(text)) return text
  throw new ConfigError(`WEIR_OPERATOR_TOKEN: must be ${TOKEN_RULE}`)
}

/** Ignoring these variables would let several replicas run without sharing any state. */
function refuseOtherAdapters(environment: NodeJS.ProcessEnv): void {
  const database = environment['WEIR_DATABASE_URL']
  if (database !== undefined && database !== 'sqlite') {
    throw new ConfigError('WEIR_DATABASE_URL: this version supports only sqlite; unset the variable')
  }
  const coordination = environment['WEIR_REDIS_URL']
  if (coordination !== undefined && coordination !== 'memory') {
    throw new ConfigError('WEIR_REDIS_URL: this version supports only memory; unset the variable')
  }
}
