// npm run references: writes the pages of docs/reference, and the types of the console's clients, from the tables that the
// service itself uses, and the tables of figures from docs/figures.json.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root, runOnRuntime } from './bootstrap.mjs'
import { configNotes, sameAs, variables } from './config-notes.mjs'
import { apiTypes } from './api-types.mjs'
import { writeDocumentsWithFigures } from './figures.mjs'

const isProgram = process.argv[1] === fileURLToPath(import.meta.url)
const code = (text) => `\`${text}\``
const table = (head, rows) =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ').replaceAll('\n', ' ')} |`).join('\n')

/** The pages by file name, before oxfmt aligns their tables. */
export async function referencePages() {
  return {
    'configuration.md': await configurationPage(),
    'errors.md': await errorsPage(),
    'metrics.md': await metricsPage(),
    'operator-api.md': await operatorPage(),
  }
}

/** The types of the APIs by file name, before oxfmt. */
export async function clientTypes() {
  const apis = Object.entries(await apiDocuments())
  return Object.fromEntries(apis.map(([name, { document, base }]) => [`${name}.ts`, apiTypes(document, base)]))
}

/**
 * Every limit, default and choice of the APIs and of weir.yaml by file name, one operation or key in a line. A test compares
 * them, so that none changes by accident.
 */
export async function limitLists() {
  const { configSchema } = await import('../src/config/config-file.ts')
  const apis = Object.entries(await apiDocuments()).map(([name, { document }]) => {
    const { paths, ...rest } = document
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, it]) => limitLine(`${method} ${path}`, withoutRepeatedErrors(it))),
    )
    return [name, [limitLine('api', rest), ...operations]]
  })
  const keys = Object.entries(configSchema.properties).map(([key, schema]) => limitLine(key, schema))
  return Object.fromEntries(
    [...apis, ['configuration', keys]].map(([name, lines]) => [`${name}.jsonl`, `${lines.join('\n')}\n`]),
  )
}

/** Without texts for people. */
function limitLine(name, value) {
  const leftOut = new Set(['description', 'summary', 'example', 'examples', 'expected'])
  const isText = (key, it) =>
    leftOut.has(key) && !(it !== null && typeof it === 'object' && ('type' in it || 'anyOf' in it))
  return JSON.stringify({ [name]: value }, (key, it) => (isText(key, it) ? undefined : it))
}

/** Of a refusal, only its codes and the names of its headers. */
function withoutRepeatedErrors({ responses, ...operation }) {
  const shown = Object.entries(responses).map(([status, it]) =>
    Number(status) < 400 ? [status, it] : [status, { codes: it.description, headers: Object.keys(it.headers) }],
  )
  return { ...operation, responses: Object.fromEntries(shown) }
}

async function apiDocuments() {
  const { openApiDocument } = await import('../src/server/openapi.ts')
  const { publicRoutes } = await import('../src/server/api/public-routes.ts')
  const { publicDescription } = await import('../src/server/api/public-description.ts')
  const { consoleDescription } = await import('../src/server/api/console-description.ts')
  const { adminRoutes } = await import('../src/server/api/admin-routes.ts')
  const { adminDescription } = await import('../src/server/api/admin-description.ts')
  const described = (description, routes) => ({
    document: openApiDocument(description, routes),
    base: description.base,
  })
  return {
    'public-api': described(publicDescription, publicRoutes({ audio: {} })),
    'console-api': described(consoleDescription, publicRoutes({ audio: {} })),
    'operator-api': described(adminDescription, adminRoutes({})),
  }
}

async function configurationPage() {
  const { configSchema } = await import('../src/config/config-file.ts')
  const rows = [...keysOf(configSchema, '')].map(([key, schema]) => {
    const [fallback, purpose] = configNotes[key]
    return [code(key), allowed(schema), fallback, purpose]
  })
  return `# Configuration

\`weir.yaml\` in the working directory, or the file that \`--config\` or \`WEIR_CONFIG\` names. Without a file, Weir runs
its own small models with the defaults below. A mistake is refused with its line; \`weir check\` lists all mistakes, and
\`weir config\` shows what is in force and where each value comes from. Changes to models and to \`rate_limit\` are taken
while the service runs; the log names every other change as one that needs a restart.

${table(['Key', 'Allowed', 'Default', 'For'], rows)}

\`models[].dedicated[]\` takes \`engine\` and \`limits\` as \`serverless\` does.

## Environment

A variable that is empty counts as unset.

${table(
  ['Variable', 'Default', 'For'],
  Object.entries(variables).map(([name, [fallback, purpose]]) => [code(name), fallback, purpose]),
)}

Downloads of models follow \`HTTPS_PROXY\` and its relatives, \`HF_ENDPOINT\` and \`HF_TOKEN\`, npm's configuration and
pip's: see [models that run here](../guides/embedded-models.md#fetching).
`
}

/** The keys that have a value of their own, with their schemas. */
export function* keysOf(schema, path) {
  if (path in sameAs) return
  const parts = schema.anyOf ?? [schema]
  const seen = new Set()
  for (const part of parts) {
    if (part.type === 'array' && part.items.type === 'object') {
      yield* keysOf(part.items, `${path}[]`)
      continue
    }
    if (part.type !== 'object') {
      yield [path, part]
      return
    }
    for (const [name, inner] of Object.entries(part.properties)) {
      if (seen.has(name)) continue
      seen.add(name)
      yield* keysOf(inner, path === '' ? name : `${path}.${name}`)
    }
    // An object with names that the operator chooses.
    if (typeof part.additionalProperties === 'object') yield [`${path}.NAME`, part.additionalProperties]
  }
}

function allowed(schema) {
  if (schema.const !== undefined) return code(schema.const)
  if (schema.enum) return schema.enum.map(code).join(', ')
  if (schema.expected) return schema.expected
  if (schema.type === 'array') {
    return `a list of ${schema.items.enum ? allowed(schema.items) : schema.items.type === 'integer' ? 'numbers' : 'texts'}`
  }
  if (schema.type === 'integer') {
    const { minimum, maximum } = schema
    return maximum === Number.MAX_SAFE_INTEGER ? `at least ${minimum}` : `${minimum} to ${maximum}`
  }
  if (schema.type === 'boolean') return '`true` or `false`'
  return 'a text'
}

async function operatorPage() {
  const { adminRoutes } = await import('../src/server/api/admin-routes.ts')
  const rows = adminRoutes({}).flatMap(({ method, path, access, operation }) =>
    operation ? [[code(`${method} ${path}`), operation.summary, access === 'open' ? 'no' : 'yes']] : [],
  )
  return `# The operator API

It has a listener of its own, by default on 127.0.0.1:8081, and needs \`Authorization: Bearer TOKEN\` with the operator
token. The listener serves its full description at \`/docs\`, and as OpenAPI 3.1 at \`/admin/v1/openapi.json\`. Commands such
as \`weir keys create\` do the same without the API.

${table(['Request', 'What it does', 'Token'], rows)}
`
}

async function errorsPage() {
  const { errorCauses, errorRemedies } = await import('../src/shared/error-help.ts')
  const { errorTable } = await import('../src/shared/errors.ts')
  const rows = Object.entries(errorTable).map(([name, { status, type, retryAfter }]) => {
    const retry = retryAfter === null ? '' : retryAfter === 'computed' ? 'yes' : `${retryAfter} s`
    return [String(status), code(name), code(type), retry, errorCauses[name], errorRemedies[name]]
  })
  return `# Error codes

Every error has the same body: \`{"error": {"message", "type", "param", "code"}}\`. \`code\` is for programs, \`message\`
for people; \`param\` names the field that it is about, if there is one. In a stream that has begun, the error is the last
event.

\`X-Should-Retry: false\` comes with every error that waiting does not cure: those without \`Retry-After\`,
\`model_not_configured\` unless the model is being downloaded, and \`upstream_error\` if the engine refuses its key. The
OpenAI and Anthropic SDKs then do not repeat the request.

${table(['Status', 'Code', 'Type', 'Retry-After', 'Cause', 'What to do'], rows)}
`
}

async function metricsPage() {
  const { metricTable } = await import('../src/operate/telemetry/metric-table.ts')
  const rows = Object.entries(metricTable).map(([name, { type, labels, help }]) => [
    code(name),
    type,
    labels.map(code).join(', '),
    help,
  ])
  return `# Metrics

\`GET /metrics\` on the operator listener, with the operator token, in the text format of Prometheus, or in OpenMetrics. A histogram has
\`_bucket\`, \`_sum\` and \`_count\`. A lane is a queue: the model's id, and for reserved capacity the workspace as well.

${table(['Metric', 'Type', 'Labels', 'What it shows'], rows)}

## Alerts worth having

\`\`\`yaml
groups:
  - name: weir
    rules:
      - { alert: EngineDown, expr: weir_engine_up == 0, for: 1m }
      - { alert: LedgerStuck, expr: weir_ledger_healthy == 0 or weir_ledger_lag_seconds > 5, for: 1m }
      - { alert: DatabaseStuck, expr: weir_journal_lag_seconds > 30, for: 1m }
      - { alert: RowsRefused, expr: weir_ledger_refused_rows > 0 }
      - { alert: QueueFull, expr: weir_queue_depth / weir_lane_max_queue_depth > 0.8, for: 5m }
      - { alert: SlowLoop, expr: weir_event_loop_delay_seconds > 0.25, for: 5m }
\`\`\`
`
}

const EVENTS = /<!-- events -->[^]*<!-- \/events -->/
const WEBHOOKS = join(root, 'docs', 'guides', 'webhooks.md')

/** The guide with its table of events, before oxfmt. */
export async function webhookGuide() {
  const { eventTable } = await import('../src/alerts/event-table.ts')
  const rows = Object.entries(eventTable).map(([type, { summary, data }]) => [
    code(type),
    summary,
    Object.keys(data.properties).map(code).join(', '),
  ])
  const events = table([code('type'), 'When', code('data')], rows)
  return readFileSync(WEBHOOKS, 'utf8').replace(EVENTS, `<!-- events -->\n\n${events}\n\n<!-- /events -->`)
}

async function writePages() {
  const directory = join(root, 'docs', 'reference')
  mkdirSync(directory, { recursive: true })
  for (const [name, text] of Object.entries(await referencePages())) writeFileSync(join(directory, name), text)
  const clients = join(root, 'console', 'generated')
  mkdirSync(clients, { recursive: true })
  for (const [name, text] of Object.entries(await clientTypes())) writeFileSync(join(clients, name), text)
  const limits = join(directory, 'limits')
  mkdirSync(limits, { recursive: true })
  for (const [name, text] of Object.entries(await limitLists())) writeFileSync(join(limits, name), text)
  writeFileSync(WEBHOOKS, await webhookGuide())
  spawnSync(join(root, 'node_modules', '.bin', 'oxfmt'), [directory, clients, WEBHOOKS], { cwd: root })
  writeDocumentsWithFigures()
  console.log('docs/reference, console/generated and the tables of figures are written')
}

if (isProgram) await runOnRuntime(import.meta.url, writePages)
