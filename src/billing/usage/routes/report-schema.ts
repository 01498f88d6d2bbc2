import { Type } from 'typebox'
import { nullable } from '../../../server/common-schema.ts'
import { usageRowExample, usageRowSchema } from './usage-schema.ts'

/** Reports about usage, for members of a workspace and for the operator. */

export const reportGroupings = ['model', 'key', 'workspace'] as const

const sums = {
  requests: Type.Integer(),
  input_tokens: Type.Integer(),
  cached_input_tokens: Type.Integer(),
  output_tokens: Type.Integer(),
  images: Type.Integer(),
  audio_ms: Type.Integer(),
  amount: Type.String({ description: 'AUD, exact, excluding GST.' }),
}

const at = Type.Integer({ description: 'Unix ms of the beginning of the hour or the day.' })

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
  unit: Type.Enum(['hour', 'day'], { description: 'Hours for up to three days, else days.' }),
  times: Type.Array(at, { description: 'Every hour or day of the period.' }),
  total: Type.Object(sums),
  series: Type.Array(Type.Object({ at, ...sums }), { description: 'Times without usage are left out.' }),
  groups: Type.Array(
    Type.Object({
      group: Type.String({ description: 'A model, the id of a key, or a workspace.' }),
      ...sums,
      series: Type.Array(Type.Object({ at, requests: Type.Integer(), amount: Type.String() })),
    }),
    { description: 'Those that cost most. What is left belongs to all others.' },
  ),
})

const sumsExample = {
  requests: 12,
  input_tokens: 340,
  cached_input_tokens: 20,
  output_tokens: 120,
  images: 0,
  audio_ms: 0,
  amount: '0.000058',
}

export const usageReportExample = {
  object: 'usage.report',
  unit: 'day',
  times: [1795000000000],
  total: sumsExample,
  series: [{ at: 1795000000000, ...sumsExample }],
  groups: [
    {
      group: usageRowExample.model,
      ...sumsExample,
      series: [{ at: 1795000000000, requests: 12, amount: '0.000058' }],
    },
  ],
}

const percentiles = Type.Object({ p50: nullable(Type.Integer()), p95: nullable(Type.Integer()) })

const latencyBuckets = Type.Array(
  Type.Object({
    at,
    requests: Type.Integer(),
    failed: Type.Integer(),
    queue_wait_ms: percentiles,
    first_token_ms: percentiles,
    duration_ms: percentiles,
  }),
  { description: 'Times without requests are left out.' },
)

export const latencyReportSchema = Type.Object({
  object: Type.Literal('latency.report'),
  unit: Type.Enum(['hour', 'day']),
  requests: Type.Integer({ description: 'How many requests it was made from, spread over the period.' }),
  of_requests: Type.Integer({ description: 'How many requests the period has.' }),
  is_complete: Type.Boolean({ description: 'Whether it was made from all of them.' }),
  buckets: latencyBuckets,
  groups: Type.Array(
    Type.Object({
      group: Type.String({ description: 'A model, or the id of a key.' }),
      requests: Type.Integer(),
      buckets: latencyBuckets,
    }),
    { description: 'Those that cost most, as in the report of usage.' },
  ),
})

const latencyBucketExample = {
  at: 1795000000000,
  requests: 12,
  failed: 1,
  queue_wait_ms: { p50: 0, p95: 120 },
  first_token_ms: { p50: 180, p95: 400 },
  duration_ms: { p50: 640, p95: 1900 },
}

export const latencyReportExample = {
  object: 'latency.report',
  unit: 'day',
  requests: 12,
  of_requests: 12,
  is_complete: true,
  buckets: [latencyBucketExample],
  groups: [{ group: usageRowExample.model, requests: 12, buckets: [latencyBucketExample] }],
}

export const monthReportSchema = Type.Object({
  object: Type.Literal('month.report'),
  month: Type.String(),
  from: Type.Integer(),
  to: Type.Integer(),
  now: Type.Integer(),
  spent: Type.String({ description: 'AUD so far, excluding GST.' }),
  pace_days: Type.Integer({ description: 'The whole days that the pace is taken from: up to seven.' }),
  per_day: nullable(Type.String(), 'AUD for a day, over pace_days; null before the first of them is over.'),
  forecast: nullable(Type.String(), 'AUD for the whole month at this pace; null with less than three days.'),
  spend_limit: nullable(Type.String()),
  spend_limit_kind: nullable(Type.Enum(['soft', 'hard'])),
  reaches_limit_at: nullable(
    Type.String(),
    'When the limit is reached at this pace; null if not this month, if it is reached, or without a forecast.',
  ),
})

export const monthReportExample = {
  object: 'month.report',
  month: '2026-11',
  from: 1793451600000,
  to: 1796043600000,
  now: 1795000000000,
  spent: '12.50',
  pace_days: 7,
  per_day: '0.80',
  forecast: '24.10',
  spend_limit: '250.00',
  spend_limit_kind: 'hard',
  reaches_limit_at: null,
}

export const requestListSchema = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(usageRowSchema, { description: 'The newest first.' }),
  next: nullable(Type.String(), "Send it as 'before' to go on. A page may be short and still have one."),
})

export const requestListExample = { object: 'list', data: [usageRowExample], next: null }

/** Of all workspaces, so each has the name of its own. */
export const newestRequestsSchema = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(Type.Object({ workspace: Type.String(), ...usageRowSchema.properties }), {
    description: 'The newest first.',
  }),
})

export const newestRequestsExample = { object: 'list', data: [{ workspace: 'acme', ...usageRowExample }] }

export const requestListQuery = Type.Object({
  from: Type.Optional(Type.String({ description: 'The first day in Sydney.' })),
  to: Type.Optional(Type.String({ description: 'The last day in Sydney.' })),
  ...usageFilterQuery,
  outcome: Type.Optional(Type.Enum(['failed'], { description: 'failed: only requests that did not complete.' })),
  before: Type.Optional(Type.String({ description: "The 'next' of the previous page." })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: '1 to 200, by default 50.' })),
})
