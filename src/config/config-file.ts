import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Type, type Static, type TInteger, type TProperties, type TString } from 'typebox'
import { eventTypes } from '../alerts/event-table.ts'
import { devicesSchema } from '../catalog/engine-run.ts'
import { modelsSchema } from '../catalog/file.ts'
import { parseCheckedYaml, type CheckedYaml } from '../shared/checked-yaml.ts'
import { isEmailAddress } from '../shared/email-address.ts'
import { memoryToParse } from '../shared/json/json-body.ts'
import { parseAbn } from '../shared/money/abn.ts'
import { isOperatorRole, memberRoles, operatorRoles } from '../shared/roles.ts'
import { isPrivateWay } from './loopback.ts'

/** The schema of weir.yaml, and the rules that a schema cannot express. */

const closed = { additionalProperties: false } as const
export const MAX_UPLOAD_BYTES = 25 * 2 ** 20
export const MAX_SPOOL_BYTES = 8 * 2 ** 30
export const BATCH_DEFAULTS = {
  maxFileBytes: 200 * 2 ** 20,
  maxFiles: 1000,
  maxStoredBytes: 10 * 2 ** 30,
  retentionDays: 30,
  maxLines: 50_000,
  maxQueuedLines: 1_000_000,
  maxInFlight: 64,
} as const
/** About a million and a half rows. */
export const MAX_JOURNAL_BYTES = 512 * 2 ** 20
export const MAX_BODY_BYTES = 20 * 2 ** 20
const port = (): TInteger => Type.Integer({ minimum: 0, maximum: 65_535 })

/** Fits into an Authorization header and is hard to guess. */
export const TOKEN = /^[!-~]{16,}$/
export const TOKEN_RULE = 'at least 16 letters, digits and punctuation marks, without spaces'

/** The database. */
export const DATABASE = /^(sqlite|postgres(ql)?:\/\/[^\s#]+)$/
export const DATABASE_RULE = 'sqlite, or the address of a PostgreSQL, such as postgres://weir@host:5432/weir'

/** The coordination of replicas. */
export const COORDINATION = /^(memory|rediss?:\/\/[^\s/?#]+(\/\d+)?)$/
export const COORDINATION_RULE = 'memory, or the address of a Redis, such as redis://host:6379'

const webAddress = (): TString =>
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

/** What an endpoint of alerts receives. */
const subscription = {
  events: Type.Optional(Type.Array(Type.Enum([...eventTypes]), { minItems: 1, maxItems: 50 })),
  workspace: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
}

/** A part of the file whose fields may all be left out. */
const section = <Fields extends TProperties>(fields: Fields) =>
  Type.Optional(Type.Partial(Type.Object(fields, closed), closed))

export const configSchema = Type.Object(
  {
    server: section({
      host: Type.String({ minLength: 1 }),
      port: port(),
      admin_host: Type.String({ minLength: 1 }),
      admin_port: port(),
      tls: Type.Object({ cert: Type.String({ minLength: 1 }), key: Type.String({ minLength: 1 }) }, closed),
      drain_ms: Type.Integer({ minimum: 0, maximum: 3_600_000 }),
      max_body_bytes: Type.Integer({ minimum: 1024, maximum: 1_073_741_824 }),
      max_request_memory_bytes: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
    }),
    data_dir: Type.Optional(Type.String({ minLength: 1 })),
    database: Type.Optional(Type.String({ pattern: DATABASE.source, expected: DATABASE_RULE })),
    ledger: section({
      max_journal_bytes: Type.Integer({ minimum: 1_048_576, maximum: 1_099_511_627_776 }),
      wait_for: Type.Enum(['journal', 'database']),
    }),
    coordination: Type.Optional(Type.String({ pattern: COORDINATION.source, expected: COORDINATION_RULE })),
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
    invoice: section({
      fonts: Type.Array(Type.String({ minLength: 1 }), { maxItems: 20 }),
      link_days: Type.Integer({ minimum: 1, maximum: 3650 }),
    }),
    smtp: Type.Optional(
      Type.Object(
        {
          host: Type.String({ pattern: '^[a-zA-Z0-9.:-]{1,253}$', expected: 'a host name, such as smtp.example.com' }),
          port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535 })),
          secure: Type.Optional(Type.Boolean()),
          user: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
          password_env: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
          from: Type.String(),
          reply_to: Type.Optional(Type.String()),
        },
        closed,
      ),
    ),
    sign_in: section({
      oidc: Type.Object(
        {
          issuer: webAddress(),
          client_id: Type.String({ minLength: 1, maxLength: 256 }),
          client_secret_env: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
          name: Type.Optional(Type.String({ minLength: 1, maxLength: 60 })),
          scopes: Type.Optional(
            Type.Array(Type.String({ pattern: '^[!#-\\[\\]-~]{1,256}$', expected: 'a scope, such as openid' }), {
              minItems: 1,
              maxItems: 20,
            }),
          ),
          public_url: Type.Optional(webAddress()),
          operator_url: Type.Optional(webAddress()),
          groups_claim: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
          name_claim: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
          session_hours: Type.Optional(Type.Integer({ minimum: 1, maximum: 720 })),
          roles: Type.Array(
            Type.Object(
              {
                group: Type.String({ minLength: 1, maxLength: 256 }),
                role: Type.Enum([...operatorRoles, ...memberRoles]),
                workspace: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
              },
              closed,
            ),
            { minItems: 1, maxItems: 1000 },
          ),
        },
        closed,
      ),
    }),
    alerts: section({
      webhooks: Type.Array(
        Type.Object(
          {
            name: Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,63}$', expected: 'a name such as billing' }),
            url: Type.String({
              pattern: '^https?://[^/?#@\\s]+(/[^#\\s]*)?$',
              maxLength: 2048,
              expected: 'an http:// or https:// address',
            }),
            secret_env: Type.String({ minLength: 1, maxLength: 128 }),
            allow_private: Type.Optional(Type.Boolean()),
            ...subscription,
          },
          closed,
        ),
        { maxItems: 50 },
      ),
      emails: Type.Array(Type.Object({ to: Type.String({ maxLength: 254 }), ...subscription }, closed), {
        maxItems: 50,
      }),
      spend_thresholds: Type.Array(Type.Integer({ minimum: 1, maximum: 1000 }), { maxItems: 20 }),
    }),
    rate_limit: section({
      requests_per_minute: Type.Integer({ minimum: 1, maximum: 100_000_000 }),
      unauthenticated_per_minute: Type.Integer({ minimum: 1, maximum: 100_000_000 }),
    }),
    images: section({
      allowed_hosts: Type.Array(Type.String({ minLength: 1 }), { maxItems: 1000 }),
      max_bytes: Type.Integer({ minimum: 1024, maximum: 1_073_741_824 }),
      max_side_px: Type.Integer({ minimum: 1, maximum: 65_535 }),
    }),
    prompts: section({
      changing_lines: Type.Array(Type.String({ minLength: 4, maxLength: 200 }), { maxItems: 20 }),
    }),
    files: Type.Optional(files),
    audio: section({
      max_upload_bytes: Type.Integer({ minimum: 1024, maximum: 1_073_741_824 }),
      max_spool_bytes: Type.Integer({ minimum: 1024, maximum: 1_099_511_627_776 }),
    }),
    batches: section({
      max_file_bytes: Type.Integer({ minimum: 1024, maximum: 1_073_741_824 }),
      max_files: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
      max_stored_bytes: Type.Integer({ minimum: 1024, maximum: Number.MAX_SAFE_INTEGER }),
      retention_days: Type.Integer({ minimum: 1, maximum: 3650 }),
      max_lines: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
      max_queued_lines: Type.Integer({ minimum: 1, maximum: 100_000_000 }),
      max_in_flight: Type.Integer({ minimum: 1, maximum: 10_000 }),
    }),
    console: section({ models: Type.Enum(['members', 'public']) }),
    log: section({ level: Type.Enum(['debug', 'info', 'warn', 'error', 'silent']) }),
    tracing: section({ endpoint: webAddress(), sample: Type.Number({ minimum: 0, maximum: 1 }) }),
    metrics: section({ endpoint: webAddress(), gen_ai_names: Type.Enum(['current', 'former', 'both']) }),
    models: Type.Optional(modelsSchema),
    devices: Type.Optional(devicesSchema),
    catalog: Type.Optional(Type.String({ minLength: 1 })),
  },
  closed,
)

export type FileContent = Static<typeof configSchema>

/** Collects mistakes; call `requireCorrect` before you rely on the data. */
export function readConfigFile(file: string, text = readFileSync(file, 'utf8')): CheckedYaml<FileContent> {
  const yaml = parseCheckedYaml(text, file, configSchema)
  const { models, devices, catalog, seller, invoice, audio = {}, server = {} } = yaml.data
  if (seller && !yaml.isBroken(['seller']) && parseAbn(seller.abn) === undefined) {
    yaml.mistake(['seller', 'abn'], `must be an 11-digit ABN with correct check digits, but is "${seller.abn}"`)
  }
  checkSmtp(yaml)
  checkSignIn(yaml)
  checkAlerts(yaml)
  if (models && catalog) yaml.mistake(['catalog'], 'give either models or catalog, not both')
  if (devices && catalog) yaml.mistake(['devices'], 'belongs into the file of the catalog, beside models')
  const { max_upload_bytes: upload = MAX_UPLOAD_BYTES, max_spool_bytes: spool = MAX_SPOOL_BYTES } = audio
  if (!yaml.isBroken(['audio']) && spool < 2 * upload) {
    yaml.mistake(
      ['audio', 'max_spool_bytes'],
      `must be at least ${2 * upload}, so that a workspace can send an upload of max_upload_bytes (${upload}) with its half`,
    )
  }
  const { max_body_bytes: body = MAX_BODY_BYTES, max_request_memory_bytes: memory = Infinity } = server
  if (!yaml.isBroken(['server']) && memory < leastRequestMemory(body)) {
    yaml.mistake(
      ['server', 'max_request_memory_bytes'],
      `must be at least ${leastRequestMemory(body)}, so that a workspace can send a body of max_body_bytes (${body})`,
    )
  }
  for (const [name, path] of Object.entries(yaml.isBroken(['server']) ? {} : (server.tls ?? {}))) {
    const tlsFile = resolve(dirname(file), path)
    if (!existsSync(tlsFile)) yaml.mistake(['server', 'tls', name], `${tlsFile} does not exist`)
  }
  for (const [index, font] of (yaml.isBroken(['invoice']) ? [] : (invoice?.fonts ?? [])).entries()) {
    // What follows a # names one font of a collection.
    const fontFile = resolve(dirname(file), font.split('#', 1)[0] ?? '')
    if (!existsSync(fontFile)) yaml.mistake(['invoice', 'fonts', index], `${fontFile} does not exist`)
  }
  const catalogFile = typeof catalog === 'string' ? resolve(dirname(file), catalog) : undefined
  if (catalogFile && !existsSync(catalogFile)) yaml.mistake(['catalog'], `${catalogFile} does not exist`)
  return yaml
}

/** Enough for the largest body, which one workspace must be able to send with its half. */
export function leastRequestMemory(maxBodyBytes: number): number {
  return 2 * memoryToParse(maxBodyBytes)
}

function checkSmtp(yaml: CheckedYaml<FileContent>): void {
  const { smtp } = yaml.data
  if (!smtp || yaml.isBroken(['smtp'])) return
  for (const name of ['from', 'reply_to'] as const) {
    if (smtp[name] !== undefined && !isEmailAddress(smtp[name])) {
      yaml.mistake(['smtp', name], `must be one e-mail address, such as accounts@example.com, but is "${smtp[name]}"`)
    }
  }
  if (smtp.user !== undefined && smtp.password_env === undefined) {
    yaml.mistake(['smtp', 'user'], 'needs password_env, the name of the variable that holds its password')
  }
  if (smtp.password_env !== undefined && smtp.user === undefined) {
    yaml.mistake(['smtp', 'password_env'], 'needs user, whose password the variable holds')
  }
}

function checkSignIn(yaml: CheckedYaml<FileContent>): void {
  const oidc = yaml.data.sign_in?.oidc
  if (!oidc || yaml.isBroken(['sign_in'])) return
  const mistake = (path: readonly (string | number)[], text: string): void =>
    yaml.mistake(['sign_in', 'oidc', ...path], text)
  for (const name of ['issuer', 'public_url', 'operator_url'] as const) {
    const address = oidc[name]
    if (address === undefined || isPrivateWay(address)) continue
    mistake([name], `must begin with https://, unless it is on this machine, but is "${address}"`)
  }
  if (oidc.scopes && !oidc.scopes.includes('openid')) mistake(['scopes'], 'must contain openid')
  for (const [index, { role, workspace }] of oidc.roles.entries()) {
    const isOperator = isOperatorRole(role)
    if (isOperator && workspace !== undefined) {
      mistake(['roles', index, 'workspace'], `leave it out: ${role} is a role in the operator's console`)
    }
    if (!isOperator && workspace === undefined) {
      mistake(['roles', index, 'role'], `${role} is a role in a workspace: add workspace, with its name`)
    }
    const [needed, whose] = isOperator
      ? (['operator_url', "the operator's console"] as const)
      : (['public_url', 'the console of workspaces'] as const)
    if (oidc[needed] === undefined) {
      mistake(['roles', index, 'role'], `${role} needs sign_in.oidc.${needed}, where people reach ${whose}`)
    }
  }
}

function checkAlerts(yaml: CheckedYaml<FileContent>): void {
  const { alerts, smtp } = yaml.data
  if (!alerts || yaml.isBroken(['alerts'])) return
  const { webhooks = [], emails = [] } = alerts
  for (const [index, { name, url }] of webhooks.entries()) {
    if (webhooks.findIndex((it) => it.name === name) < index) {
      yaml.mistake(['alerts', 'webhooks', index, 'name'], `another webhook is called ${name}, too`)
    }
    if (!URL.canParse(url)) yaml.mistake(['alerts', 'webhooks', index, 'url'], 'is not an address')
  }
  for (const [index, { to }] of emails.entries()) {
    if (!isEmailAddress(to)) {
      yaml.mistake(['alerts', 'emails', index, 'to'], `must be one e-mail address, but is "${to}"`)
    }
    if (emails.findIndex((it) => it.to === to) < index) {
      yaml.mistake(['alerts', 'emails', index, 'to'], `${to} is listed twice; list its events together`)
    }
  }
  if (emails.length > 0 && !smtp) yaml.mistake(['alerts', 'emails'], 'needs smtp, which sends them')
}
