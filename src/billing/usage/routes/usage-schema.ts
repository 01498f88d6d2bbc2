import { Type, type TInteger, type TString } from 'typebox'
import { csvCell, exportColumns, exportFormats, exportTypes, type ExportFormat } from '../usage-export.ts'
import { serviceTiers } from '../../rating/rating.ts'
import type { Grouping } from '../usage-sums.ts'
import { nullable, textSchema } from '../../../server/common-schema.ts'
import type { ResponseDescription } from '../../../server/route.ts'

/** The queries and reports of usage, for the keys of a workspace and for the operator. */

const count = (description?: string): TInteger => Type.Integer(description === undefined ? {} : { description })
const text = (description?: string): TString => Type.String(description === undefined ? {} : { description })

export function usageQuerySchema(groupings: readonly Grouping[]) {
  return Type.Object({
    from: Type.Optional(text('A date in Sydney such as 2026-11-01, or a time such as 2026-11-01T00:00:00Z.')),
    to: Type.Optional(text('A date, which is included, or a time, which is not.')),
    group_by: Type.Optional(
      Type.Enum([...groupings], { description: `Returns sums instead of rows, by ${groupings.join(', ')}.` }),
    ),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 10_000, description: 'Entries per page: 1 to 10000, by default 100.' }),
    ),
    after: Type.Optional(text("The 'next' of the previous page.")),
    model: Type.Optional(text('Only rows of this model.')),
    key: Type.Optional(text('Only rows of the key with this id.')),
    service_tier: Type.Optional(
      Type.Enum([...serviceTiers], { description: `Only rows of this tier: ${serviceTiers.join(', ')}.` }),
    ),
    price_versions: Type.Optional(text('A comma list. Only rows at these price versions.')),
    credit_note: Type.Optional(text('Only rows of this adjustment note.')),
    format: Type.Optional(
      Type.Enum(['json', ...exportFormats], {
        description: `json (default), or a file with one row per line: ${exportFormats.join(', ')}.`,
      }),
    ),
  })
}

const quantities = {
  input_tokens: count(),
  cached_input_tokens: count('Part of the input tokens, not in addition to them.'),
  output_tokens: count(),
  images: count(),
  audio_ms: count('Milliseconds of audio.'),
  amount_pico_aud: text('Exact, in units of 10⁻¹² AUD, excluding GST.'),
}

export const usageRowSchema = Type.Object({
  request_id: text('The X-Request-Id of the response.'),
  model: text(),
  lane: text(),
  endpoint: text(),
  service_tier: text('default, flex or batch.'),
  key_id: text(),
  max_tokens: count(),
  ...quantities,
  estimated: Type.Boolean({ description: 'True if the engine reported no usage, and the figures are an estimate.' }),
  outcome: text('completed, engine_failed, engine_broke, caller_left, interrupted or withheld.'),
  http_status: nullable(
    Type.Integer(),
    'The status of the response; 499 if the caller left. null if the service stopped before the end, in rows of older versions, and in rows that are no requests.',
  ),
  error_code: nullable(Type.String(), 'The code of the error that the caller got; null if there was none.'),
  price_version: Type.Integer({ description: 'Zero or less: reserved capacity, whose tokens are free.' }),
  queue_wait_ms: count(),
  first_token_ms: nullable(Type.Integer()),
  duration_ms: count(),
  started: text(),
  settled: text('The time that decides which month the row is billed in.'),
  capacity_ms: Type.Optional(count('For reserved capacity: how long it was reserved.')),
  corrects: Type.Optional(text('For a correction: the row that it reverses.')),
  reason: Type.Optional(text()),
  credit_note: Type.Optional(nullable(Type.String())),
})

export const requestIdDescription = {
  description: 'The X-Request-Id of a response.',
  example: '0mgx1vk2v5f0c7d9e2b14a6f8d3e5c70',
}

const quantitiesExample = {
  input_tokens: 27,
  cached_input_tokens: 0,
  output_tokens: 14,
  images: 0,
  audio_ms: 0,
  amount_pico_aud: '5500000',
}

/** The operator sees the rows of all workspaces. */
export const operatorRowSchema = Type.Object({
  workspace: nullable(Type.String(), 'The name of the workspace.'),
  ...usageRowSchema.properties,
})

export const usageRowExample = {
  request_id: requestIdDescription.example,
  model: 'huggingfacetb/smollm2-135m-instruct',
  lane: 'huggingfacetb/smollm2-135m-instruct',
  endpoint: '/chat/completions',
  service_tier: 'default',
  key_id: 'key_7f3a9c21',
  max_tokens: 100,
  ...quantitiesExample,
  estimated: false,
  outcome: 'completed',
  http_status: 200,
  error_code: null,
  price_version: 1,
  queue_wait_ms: 0,
  first_token_ms: 180,
  duration_ms: 640,
  started: '2026-11-15T22:04:05.000Z',
  settled: '2026-11-15T22:04:05.640Z',
}

export const operatorRowExample = { workspace: 'acme', ...usageRowExample }

const usageListExample = { object: 'list', data: [usageRowExample], has_more: false, next: null }

const sums = {
  requests: count(),
  estimated_requests: count('How many of them have estimated figures.'),
  cache_hit_rate: nullable(Type.Number(), 'cached_input_tokens / input_tokens; null without input.'),
  capacity_ms: count(),
  amount: text('AUD, exact, excluding GST.'),
}

const groupDescriptions: Readonly<Record<Grouping, string>> = {
  workspace: 'With group_by=workspace: the name of a workspace.',
  model: 'In rows, and with group_by=model.',
  key: 'With group_by=key: the id of a key.',
  day: 'With group_by=day: a date in Sydney.',
  service_tier: 'In rows, and with group_by=service_tier.',
}

export function usageResponse(groupings: readonly Grouping[]): ResponseDescription {
  const group = Object.fromEntries(groupings.map((it) => [it, Type.Optional(text(groupDescriptions[it]))]))
  const list = Type.Object({
    object: Type.Literal('list'),
    group_by: Type.Optional(Type.String()),
    data: Type.Array(
      Type.Object({ ...Type.Partial(Type.Object({ ...usageRowSchema.properties, ...sums })).properties, ...group }),
      { description: 'Rows, oldest first. With group_by: sums.' },
    ),
    total: Type.Optional(Type.Object({ ...quantities, ...sums }, { description: 'With group_by: the whole period.' })),
    has_more: Type.Boolean(),
    next: nullable(Type.String(), "Send it as 'after' to get the next page. null on the last page."),
  })
  const files = Object.fromEntries(
    exportFormats.map((format) => [
      mediaType(exportTypes[format]),
      { schema: textSchema, example: fileExamples[format] },
    ]),
  )
  return { status: 200, content: { 'application/json': { schema: list, example: usageListExample }, ...files } }
}

const csvRow: Readonly<Record<string, string | number | boolean | null>> = {
  ...usageRowExample,
  date_sydney: '2026-11-16',
  amount_aud: '0.0000027',
}

const fileExamples: Readonly<Record<ExportFormat, string>> = {
  csv: `${exportColumns.join(',')}\n${exportColumns.map((column) => csvCell(csvRow[column])).join(',')}\n`,
  jsonl: `${JSON.stringify(csvRow)}\n`,
}

/** Without its parameters, such as the charset. */
function mediaType(contentType: string): string {
  return contentType.split(';', 1)[0] ?? contentType
}
