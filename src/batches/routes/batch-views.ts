import { Type } from 'typebox'
import { EXAMPLE_TIME, nullable } from '../../server/common-schema.ts'
import { formatAud } from '../../shared/money/money.ts'
import type { Batch } from '../batch-store.ts'
import type { Batches } from '../batches.ts'
import { batchSchema, errorsView, EXAMPLE_ID } from './batches.ts'

/** Batches as both consoles show them. */

const time = (description?: string) => nullable(Type.String({ example: EXAMPLE_TIME }), description)

export const pageQuery = {
  before: Type.Optional(Type.String({ maxLength: 100, description: "The 'next' of the previous page." })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: '1 to 100, by default 20.' })),
}

export const batchInListSchema = Type.Object({
  id: Type.String({ example: EXAMPLE_ID }),
  filename: nullable(
    Type.String({ example: 'questions.jsonl' }),
    'Of the input file; null if the file has been deleted.',
  ),
  endpoint: batchSchema.properties.endpoint,
  status: batchSchema.properties.status,
  paused: nullable(
    Type.Object({ code: Type.String(), message: Type.String(), since: Type.String() }),
    'Why no line is run now. It goes on by itself when the reason is gone.',
  ),
  request_counts: batchSchema.properties.request_counts,
  created_at: Type.String({ example: EXAMPLE_TIME }),
})

export const batchDetailSchema = Type.Object({
  ...batchInListSchema.properties,
  expires_at: Type.String({ description: 'Lines that have not run then are not run.', example: EXAMPLE_TIME }),
  ended_at: time('When its results were written.'),
  output_file_id: batchSchema.properties.output_file_id,
  error_file_id: batchSchema.properties.error_file_id,
  errors: batchSchema.properties.errors,
  amount: Type.String({ description: 'What its lines have cost so far, in AUD, excluding GST.', example: '0.0123' }),
  lines_per_minute: nullable(
    Type.Number({ example: 84.5 }),
    'Of the last ten minutes; null if no line can run now, or too few have ended.',
  ),
  expected_end: time('When the last line ends at this pace. It may be after the batch expires.'),
  failures: Type.Array(
    Type.Object({
      code: Type.String({ example: 'context_length_exceeded' }),
      count: Type.Integer({ example: 3 }),
      line: Type.Integer({ description: 'The first of them.', example: 17 }),
      custom_id: Type.String({ example: 'question-17' }),
      message: Type.String(),
    }),
    { description: 'The lines that failed, by their error, the most frequent first.' },
  ),
})

const iso = (ms: number): string => new Date(ms).toISOString()
const isoOrNull = (ms: number | null): string | null => (ms === null ? null : iso(ms))

export function batchInList({ id, filename, endpoint, state, pause, counts, createdAt }: Batch) {
  return {
    id,
    filename,
    endpoint,
    status: state,
    paused: pause && { ...pause, since: iso(pause.since) },
    request_counts: counts,
    created_at: iso(createdAt),
  }
}

export async function batchDetail(batches: Batches, batch: Batch) {
  const { amount, linesPerMinute, expectedEnd, failures } = await batches.progress(batch)
  return {
    ...batchInList(batch),
    expires_at: iso(batch.expiresAt),
    ended_at: isoOrNull(batch.endedAt),
    output_file_id: batch.outputFileId,
    error_file_id: batch.errorFileId,
    errors: batch.errors && errorsView(batch.errors),
    amount: formatAud(amount),
    lines_per_minute: linesPerMinute === null ? null : Math.round(linesPerMinute * 10) / 10,
    expected_end: isoOrNull(expectedEnd),
    failures: failures.map(({ customId, ...kind }) => ({ ...kind, custom_id: customId })),
  }
}
