import { Type, type TObject } from 'typebox'
import type { Outcome } from '../../../ledger/rows.ts'
import { errorCodes } from '../../../shared/errors.ts'
import { EXAMPLE_MODEL, nullable } from '../../../server/common-schema.ts'
import { operatorRowExample, operatorRowSchema, usageRowExample, usageRowSchema } from './usage-schema.ts'

const outcomes = [
  'completed',
  'engine_failed',
  'engine_broke',
  'caller_left',
  'interrupted',
  'withheld',
] as const satisfies readonly Outcome[]

/** Reports about usage, for members of a workspace and for the operator. */

export const reportGroupings = ['model', 'key', 'workspace'] as const

const sums = {
  requests: Type.Integer({ example: 12 }),
  input_tokens: Type.Integer({ example: 340 }),
  cached_input_tokens: Type.Integer({ example: 20 }),
  output_tokens: Type.Integer({ example: 120 }),
  images: Type.Integer(),
  audio_ms: Type.Integer(),
  amount: Type.String({ description: 'AUD, exact, excluding GST.', example: '0.000058' }),
}

const at = Type.Integer({ description: 'Unix ms of the beginning of the hour or the day.', example: 1795000000000 })

export const periodQuery = {
  from: Type.String({ description: 'The first day in Sydney.', example: '2026-11-01' }),
  to: Type.String({ description: 'The last day in Sydney.', example: '2026-11-16' }),
}

export const usageFilterQuery = {
  model: Type.Optional(Type.String({ description: 'Only this model.' })),
  key: Type.Optional(Type.String({ description: 'Only the key with this id.' })),
}

export const usageReportSchema = Type.Object({
  object: Type.Literal('usage.report'),
  unit: Type.Enum(['hour', 'day'], { description: 'Hours for up to three days, else days.', example: 'day' }),
  times: Type.Array(at, { description: 'Every hour or day of the period.' }),
  total: Type.Object(sums),
  series: Type.Array(Type.Object({ at, ...sums }), { description: 'Times without usage are left out.' }),
  groups: Type.Array(
    Type.Object({
      group: Type.String({ description: 'A model, the id of a key, or a workspace.', example: EXAMPLE_MODEL }),
      ...sums,
      series: Type.Array(Type.Object({ at, requests: sums.requests, amount: Type.String({ example: '0.000058' }) })),
    }),
    { description: 'Those that cost most. What is left belongs to all others.' },
  ),
})

const percentiles = (p50: number, p95: number) =>
  Type.Object({ p50: nullable(Type.Integer({ example: p50 })), p95: nullable(Type.Integer({ example: p95 })) })

const latencyBuckets = Type.Array(
  Type.Object({
    at,
    requests: sums.requests,
    failed: Type.Integer({ example: 1 }),
    queue_wait_ms: percentiles(0, 120),
    first_token_ms: percentiles(180, 400),
    duration_ms: percentiles(640, 1900),
    tokens_per_second: Type.Object(
      { p50: nullable(Type.Number({ example: 41.5 })), p95: nullable(Type.Number({ example: 12.3 })) },
      {
        description:
          'Output tokens for each second from admission to the end; null without output. 95 of 100 requests are at least as fast as p95.',
      },
    ),
  }),
  { description: 'Times without requests are left out.' },
)

export const latencyReportSchema = Type.Object({
  object: Type.Literal('latency.report'),
  unit: Type.Enum(['hour', 'day'], { example: 'day' }),
  requests: { ...sums.requests, description: 'How many requests it was made from, spread over the period.' },
  of_requests: { ...sums.requests, description: 'How many requests the period has.' },
  is_complete: Type.Boolean({ description: 'Whether it was made from all of them.', example: true }),
  buckets: latencyBuckets,
  groups: Type.Array(
    Type.Object({
      group: Type.String({ description: 'A model, the id of a key, or a workspace.', example: EXAMPLE_MODEL }),
      requests: sums.requests,
      buckets: latencyBuckets,
    }),
    { description: 'Those that cost most, as in the report of usage.' },
  ),
})

export const monthReportSchema = Type.Object({
  object: Type.Literal('month.report'),
  month: Type.String({ example: '2026-11' }),
  from: Type.Integer({ example: 1793451600000 }),
  to: Type.Integer({ example: 1796043600000 }),
  now: Type.Integer({ example: 1795000000000 }),
  spent: Type.String({ description: 'AUD so far, excluding GST.', example: '12.50' }),
  pace_days: Type.Integer({ description: 'The whole days that the pace is taken from: up to seven.', example: 7 }),
  per_day: nullable(
    Type.String({ example: '0.80' }),
    'AUD for a day, over pace_days; null before the first of them is over.',
  ),
  forecast: nullable(
    Type.String({ example: '24.10' }),
    'AUD for the whole month at this pace; null with less than three days.',
  ),
  spend_limit: nullable(Type.String({ example: '250.00' })),
  spend_limit_kind: nullable(Type.Enum(['soft', 'hard'], { example: 'hard' })),
  reaches_limit_at: nullable(
    Type.String(),
    'When the limit is reached at this pace; null if not this month, if it is reached, or without a forecast.',
  ),
})

const listOf = (row: TObject) =>
  Type.Object({
    object: Type.Literal('list'),
    data: Type.Array(row, { description: 'The newest first.' }),
    next: nullable(Type.String(), "Send it as 'before' to go on. A page may be short and still have one."),
  })

export const requestListSchema = listOf(usageRowSchema)

export const operatorRequestListSchema = listOf(operatorRowSchema)
export const operatorRequestListExample = { object: 'list', data: [operatorRowExample], next: null }

export const requestListExample = { object: 'list', data: [usageRowExample], next: null }

export const requestListQuery = Type.Object({
  from: Type.Optional(
    Type.String({ description: 'A date in Sydney such as 2026-11-01, or a time such as 2026-11-01T00:00:00Z.' }),
  ),
  to: Type.Optional(Type.String({ description: 'A date, which is included, or a time, which is not.' })),
  ...usageFilterQuery,
  status: Type.Optional(
    Type.Integer({ minimum: 100, maximum: 599, description: 'Only requests that ended with this HTTP status.' }),
  ),
  code: Type.Optional(Type.Enum(errorCodes, { description: 'Only requests that failed with this error code.' })),
  outcome: Type.Optional(
    Type.Enum(['failed', ...outcomes], {
      description: 'Only requests that ended like this. failed: only those that did not complete.',
    }),
  ),
  before: Type.Optional(Type.String({ description: "The 'next' of the previous page." })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: '1 to 200, by default 50.' })),
})
