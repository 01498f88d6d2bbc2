import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { totalmem } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { getHeapStatistics } from 'node:v8'
import { parseCatalog, toModels, type CatalogSource, type Secrets } from './catalog/file.ts'
import { catalogSource } from './config/config-catalog.ts'
import { databaseFrom, portFrom, redisFrom, tokenFrom } from './config/environment-values.ts'
import { roleRuleText, signInFrom } from './config/sign-in-settings.ts'
import { alertEndpointTexts, alertsFrom } from './config/alert-settings.ts'
import { settingSources } from './config/setting-sources.ts'
import { smtpFrom } from './config/smtp-settings.ts'
import {
  metricsExportFrom,
  type MetricsExportSettings,
  tracingFrom,
  type TracingSettings,
} from './config/tracing-settings.ts'
import { filesFrom, type FilesConfig } from './config/config-storage.ts'
import { parseAbn } from './shared/money/abn.ts'
import {
  BATCH_DEFAULTS,
  leastRequestMemory,
  MAX_BODY_BYTES,
  MAX_JOURNAL_BYTES,
  MAX_SPOOL_BYTES,
  MAX_UPLOAD_BYTES,
  readConfigFile,
  type FileContent,
} from './config/config-file.ts'
import { withoutPassword } from './shared/address-without-password.ts'
import { ConfigError, type CheckedYaml } from './shared/checked-yaml.ts'
import type { Setting, SettingValue } from './shared/settings.ts'
import type { SignInProvider } from './shared/sign-in-provider.ts'
import type { AlertSettings } from './alerts/endpoints.ts'
import type { SmtpServer } from './shared/smtp-server.ts'
import type { Seller } from './billing/invoices/invoice-document.ts'
import type { ImageLimits } from './shared/image-header.ts'

/** Reads the file and the environment into one frozen, validated Config. Nothing else reads process.env. */
export interface Config {
  /** The file it was read from, if any. */
  readonly file: string | undefined
  readonly host: string
  readonly port: number
  readonly adminHost: string
  readonly adminPort: number
  /** The public listener serves HTTPS with these files; undefined: HTTP. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined
  /** How long requests may run on after a shutdown begins. */
  readonly drainMs: number
  readonly dataDir: string
  /** What all workers of this machine share. The same as `dataDir` without workers. */
  readonly sharedDir: string
  /** The number of this process among the workers of `weir serve --workers`. */
  readonly worker: number | undefined
  /** How many processes share this machine's memory and its data disk: the workers, or this one alone. */
  readonly processes: number
  readonly modelsDir: string
  /** For downloads: proxies, the model hub's address and token, npm's configuration. */
  readonly environment: NodeJS.ProcessEnv
  readonly operatorToken: string | undefined
  /** The address of PostgreSQL; undefined: SQLite in the data directory. It may contain a password. */
  readonly databaseUrl: string | undefined
  /** The address of the Redis that coordinates replicas; undefined when there is only one. It may contain a password. */
  readonly redisUrl: string | undefined
  /** Who issues the invoices. */
  readonly seller: Seller | undefined
  readonly invoice: {
    /** Font files for writing systems that Weir's own fonts lack. */
    readonly fonts: readonly string[]
    /** How long the links on an invoice work. */
    readonly linkDays: number
  }
  /** How invoices are sent by e-mail; undefined: not at all. */
  readonly smtp: SmtpServer | undefined
  /** Where people sign in to the consoles; undefined: only with keys, links and the operator token. */
  readonly signIn: SignInProvider | undefined
  /** Who is notified of what. */
  readonly alerts: AlertSettings
  readonly requestsPerMinute: number
  readonly unauthenticatedPerMinute: number
  readonly maxBodyBytes: number
  /** For the bodies and answers of all requests in flight. */
  readonly maxRequestMemoryBytes: number
  /** The size limit of rows that are not in the database yet. */
  readonly maxJournalBytes: number
  /** What a caller's last byte waits for: that the row is durable in the journal, or in the database. */
  readonly waitFor: 'journal' | 'database'
  readonly imageHosts: readonly string[]
  readonly imageLimits: ImageLimits
  /** The beginnings of lines in system messages that differ between requests. */
  readonly changingLines: readonly string[]
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
  /** The limits of each workspace for batches and their files. */
  readonly batches: {
    readonly maxFileBytes: number
    readonly maxFiles: number
    readonly maxStoredBytes: number
    /** How long files are kept, and batches after their end. */
    readonly retentionDays: number
    readonly maxLines: number
    /** Of all its unfinished batches. */
    readonly maxQueuedLines: number
    /** Lines that one process runs at a time. */
    readonly maxInFlight: number
  }
  /** Who can see the models and their list prices in the console: signed-in members, or everyone. */
  readonly consoleModels: 'members' | 'public'
  readonly logLevel: string
  /** Where traces are sent, and of which requests; undefined: nowhere. */
  readonly tracing: TracingSettings | undefined
  /** Where metrics are sent, besides being scraped; undefined: nowhere. */
  readonly metricsExport: MetricsExportSettings | undefined
  /** Which of OpenTelemetry's names for token metrics are used. */
  readonly genAiNames: 'current' | 'former' | 'both'
  readonly catalog: CatalogSource
  /** Every setting with its source, for people. Secrets are left out. */
  readonly settings: readonly Setting[]
  /** Reads the file again, with the same options and variables. */
  reread(): Config
}

/** Whether this process does what one of the workers does for all. A process without workers does everything. */
export const isFirstWorker = ({ worker }: Pick<Config, 'worker'>): boolean => worker === undefined || worker === 1

/** Where a configuration is looked for, in the working directory, if none is named. */
export const CONFIG_FILE = 'weir.yaml'

/** Options of the command line. */
export interface Overrides {
  readonly config?: string | undefined
  readonly port?: string | undefined
  readonly data?: string | undefined
}

/** A dumb terminal cannot move its cursor. */
export function isDumbTerminal(variables: NodeJS.ProcessEnv = process.env): boolean {
  return variables['TERM'] === 'dumb'
}

export function loadConfig(overrides: Overrides = {}, variables: NodeJS.ProcessEnv = process.env): Config {
  const environment = settled(variables)
  const file = configFile(overrides, environment)
  const text = file === undefined ? undefined : readFileSync(file, 'utf8')
  const yaml = file === undefined ? undefined : readConfigFile(file, text)
  yaml?.requireCorrect()
  const content: FileContent = yaml?.data ?? {}
  const base = file === undefined ? process.cwd() : dirname(resolve(file))
  const { server, rate_limit: rateLimit, seller } = content
  const host = environment['WEIR_HOST'] ?? server?.host ?? '127.0.0.1'
  const directory = dataDir(overrides, environment, content, base)
  const config = {
    file,
    host,
    port: portFrom(overrides.port, '--port') ?? portFrom(environment['WEIR_PORT'], 'WEIR_PORT') ?? server?.port ?? 8080,
    adminHost: server?.admin_host ?? '127.0.0.1',
    adminPort: portFrom(environment['WEIR_ADMIN_PORT'], 'WEIR_ADMIN_PORT') ?? server?.admin_port ?? 8081,
    tls: server?.tls && { cert: resolve(base, server.tls.cert), key: resolve(base, server.tls.key) },
    drainMs: server?.drain_ms ?? 30_000,
    dataDir: directory,
    sharedDir: directory,
    worker: undefined,
    processes: 1,
    modelsDir: join(directory, 'models'),
    environment,
    operatorToken: tokenFrom(environment['WEIR_OPERATOR_TOKEN']) ?? content.operator_token,
    databaseUrl: databaseFrom(environment['WEIR_DATABASE_URL'] ?? content.database),
    redisUrl: redisFrom(environment['WEIR_REDIS_URL'] ?? content.coordination),
    seller: seller && sellerFrom(seller),
    invoice: {
      fonts: (content.invoice?.fonts ?? []).map((font) => resolve(base, font)),
      linkDays: content.invoice?.link_days ?? 90,
    },
    smtp: yaml && smtpFrom(yaml, (name) => environment[name]),
    signIn: yaml && signInFrom(yaml, (name) => environment[name]),
    alerts: alertsFrom(yaml, (name) => environment[name]),
    requestsPerMinute: rateLimit?.requests_per_minute ?? 600,
    unauthenticatedPerMinute: rateLimit?.unauthenticated_per_minute ?? 60,
    maxBodyBytes: server?.max_body_bytes ?? MAX_BODY_BYTES,
    maxJournalBytes: content.ledger?.max_journal_bytes ?? MAX_JOURNAL_BYTES,
    waitFor: content.ledger?.wait_for ?? ('journal' as const),
    maxRequestMemoryBytes: server?.max_request_memory_bytes ?? requestMemory(server?.max_body_bytes),
    imageHosts: content.images?.allowed_hosts ?? [],
    imageLimits: {
      maxBytes: content.images?.max_bytes ?? 20 * 1024 * 1024,
      maxSidePx: content.images?.max_side_px ?? 8192,
    },
    changingLines: content.prompts?.changing_lines ?? [],
    files: () => yaml && filesFrom(yaml, host, (name) => environment[name]),
    audio: {
      maxUploadBytes: content.audio?.max_upload_bytes ?? MAX_UPLOAD_BYTES,
      maxSpoolBytes: content.audio?.max_spool_bytes ?? MAX_SPOOL_BYTES,
    },
    batches: {
      maxFileBytes: content.batches?.max_file_bytes ?? BATCH_DEFAULTS.maxFileBytes,
      maxFiles: content.batches?.max_files ?? BATCH_DEFAULTS.maxFiles,
      maxStoredBytes: content.batches?.max_stored_bytes ?? BATCH_DEFAULTS.maxStoredBytes,
      retentionDays: content.batches?.retention_days ?? BATCH_DEFAULTS.retentionDays,
      maxLines: content.batches?.max_lines ?? BATCH_DEFAULTS.maxLines,
      maxQueuedLines: content.batches?.max_queued_lines ?? BATCH_DEFAULTS.maxQueuedLines,
      maxInFlight: content.batches?.max_in_flight ?? BATCH_DEFAULTS.maxInFlight,
    },
    consoleModels: content.console?.models ?? ('members' as const),
    logLevel: content.log?.level ?? 'info',
    tracing: tracingFrom(content.tracing, environment),
    metricsExport: metricsExportFrom(content.metrics, environment),
    genAiNames: content.metrics?.gen_ai_names ?? ('current' as const),
    catalog: catalogSource(
      file,
      yaml && { text: text ?? '', yaml },
      base,
      (name) => environment[name],
      join(directory, 'models'),
    ),
  }
  const settings = settingsOf(config, content, yaml, overrides, environment)
  return Object.freeze({ ...config, settings, reread: () => loadConfig(overrides, variables) })
}

/** Every mistake in the options, the variables, the file and its catalog, each in one line; and which file that is. */
export function findMistakes(
  overrides: Overrides = {},
  variables: NodeJS.ProcessEnv = process.env,
): { readonly file: string | undefined; readonly mistakes: readonly string[] } {
  const environment = settled(variables)
  const found: string[] = []
  let file: string | undefined
  const collect = (check: () => unknown): void => {
    try {
      check()
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      for (const mistake of error.mistakes) if (!found.includes(mistake)) found.push(mistake)
    }
  }
  collect(() => portFrom(overrides.port, '--port'))
  collect(() => portFrom(environment['WEIR_PORT'], 'WEIR_PORT'))
  collect(() => portFrom(environment['WEIR_ADMIN_PORT'], 'WEIR_ADMIN_PORT'))
  collect(() => tokenFrom(environment['WEIR_OPERATOR_TOKEN']))
  collect(() => databaseFrom(environment['WEIR_DATABASE_URL']))
  collect(() => redisFrom(environment['WEIR_REDIS_URL']))
  collect(() => tracingFrom(undefined, environment))
  collect(() => metricsExportFrom(undefined, environment))
  collect(() => {
    file = configFile(overrides, environment)
    if (file === undefined) return
    const secrets: Secrets = (name) => environment[name]
    const yaml = readConfigFile(file)
    toModels(yaml.data, yaml, secrets)
    collect(() => yaml.requireCorrect())
    const { catalog } = yaml.data
    const other = typeof catalog === 'string' ? resolve(dirname(file), catalog) : undefined
    if (other !== undefined && existsSync(other)) {
      collect(() => parseCatalog(readFileSync(other, 'utf8'), other, secrets))
    }
  })
  if (found.length === 0) {
    collect(() => loadConfig(overrides, variables).files())
    collect(() => loadConfig(overrides, variables).smtp?.login())
    collect(() => loadConfig(overrides, variables).signIn?.clientSecret())
    collect(() =>
      loadConfig(overrides, variables).alerts.endpoints.forEach((it) => it.kind === 'webhook' && it.secret()),
    )
  }
  return { file, mistakes: found }
}

/** An empty variable counts as unset: an empty WEIR_HOST must not mean every interface. */
function settled(variables: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ''))
}

function configFile(overrides: Overrides, environment: NodeJS.ProcessEnv): string | undefined {
  const named = overrides.config ?? environment['WEIR_CONFIG']
  if (named !== undefined && !existsSync(named)) throw new ConfigError(`${named} does not exist`)
  return named ?? (existsSync(CONFIG_FILE) ? CONFIG_FILE : undefined)
}

/** A quarter of the memory that the process may use, and half of what V8 may, because parsed bodies are in its heap. */
function requestMemory(maxBodyBytes = MAX_BODY_BYTES): number {
  const machine = Math.min(totalmem(), process.constrainedMemory() || Infinity)
  const allowed = Math.min(machine / 4, getHeapStatistics().heap_size_limit / 2)
  return Math.max(Math.floor(allowed), leastRequestMemory(maxBodyBytes))
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

function settingsOf(
  config: Omit<Config, 'settings' | 'reread'>,
  content: FileContent,
  yaml: CheckedYaml<FileContent> | undefined,
  overrides: Overrides,
  environment: NodeJS.ProcessEnv,
): readonly Setting[] {
  const sourceOf = settingSources({ content, yaml, overrides, environment })
  const { operatorToken } = config
  const { roles: rules = [], ...oidc } = content.sign_in?.oidc ?? {}
  const known: readonly (readonly [key: string, value: SettingValue, fingerprint?: string])[] = [
    ['server.host', config.host],
    ['server.port', config.port],
    ['server.admin_host', config.adminHost],
    ['server.admin_port', config.adminPort],
    ...Object.entries(config.tls ?? {}).map(([name, file]) => [`server.tls.${name}`, file] as const),
    ['server.drain_ms', config.drainMs],
    ['server.max_body_bytes', config.maxBodyBytes],
    ['server.max_request_memory_bytes', config.maxRequestMemoryBytes],
    ['data_dir', config.dataDir],
    ['database', withoutPassword(config.databaseUrl ?? 'sqlite')],
    ['ledger.max_journal_bytes', config.maxJournalBytes],
    ['ledger.wait_for', config.waitFor],
    ['coordination', withoutPassword(config.redisUrl ?? 'memory')],
    ['rate_limit.requests_per_minute', config.requestsPerMinute],
    ['rate_limit.unauthenticated_per_minute', config.unauthenticatedPerMinute],
    ['images.allowed_hosts', config.imageHosts],
    ['images.max_bytes', config.imageLimits.maxBytes],
    ['images.max_side_px', config.imageLimits.maxSidePx],
    ['prompts.changing_lines', config.changingLines],
    ['audio.max_upload_bytes', config.audio.maxUploadBytes],
    ['audio.max_spool_bytes', config.audio.maxSpoolBytes],
    ['batches.max_file_bytes', config.batches.maxFileBytes],
    ['batches.max_files', config.batches.maxFiles],
    ['batches.max_stored_bytes', config.batches.maxStoredBytes],
    ['batches.retention_days', config.batches.retentionDays],
    ['batches.max_lines', config.batches.maxLines],
    ['batches.max_queued_lines', config.batches.maxQueuedLines],
    ['batches.max_in_flight', config.batches.maxInFlight],
    ['invoice.link_days', config.invoice.linkDays],
    ['invoice.fonts', config.invoice.fonts],
    [
      'alerts.webhooks',
      alertEndpointTexts(config.alerts, 'webhook'),
      fingerprint(config.alerts.endpoints.map((it) => it.url).join(' ')),
    ],
    ['alerts.emails', alertEndpointTexts(config.alerts, 'email')],
    ['alerts.spend_thresholds', config.alerts.spendThresholds.map(String)],
    ['console.models', config.consoleModels],
    ['log.level', config.logLevel],
    ...(config.tracing
      ? ([
          ['tracing.endpoint', withoutPassword(config.tracing.url)],
          ['tracing.sample', config.tracing.share],
        ] as const)
      : []),
    ...(config.metricsExport ? [['metrics.endpoint', withoutPassword(config.metricsExport.url)] as const] : []),
    ['metrics.gen_ai_names', config.genAiNames],
    ['catalog', config.catalog.file === undefined ? 'built in' : resolve(config.catalog.file)],
    // These have no defaults worth showing.
    ...(['seller', 'smtp', 'files'] as const).flatMap((part) =>
      Object.entries(content[part] ?? {}).map(
        ([name, value]) => [`${part}.${name}`, typeof value === 'boolean' ? String(value) : value] as const,
      ),
    ),
    ...Object.entries(oidc).map(([name, value]) => [`sign_in.oidc.${name}`, value] as const),
    ...(rules.length === 0 ? [] : [['sign_in.oidc.roles', rules.map(roleRuleText)] as const]),
  ]
  return [
    ...known.map(([key, value, hash]) => ({
      key,
      value,
      source: sourceOf(key),
      ...(hash ? { fingerprint: hash } : {}),
    })),
    {
      key: 'operator_token',
      value: operatorToken === undefined ? 'in the file operator-token' : 'set',
      source: sourceOf('operator_token'),
      fingerprint: operatorToken === undefined ? '' : fingerprint(operatorToken),
    },
  ]
}

/** Shows that a setting has changed whose value is hidden. */
function fingerprint(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}
