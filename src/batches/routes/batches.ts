import { Type } from 'typebox'
import { bodyErrors } from '../../server/body.ts'
import { nullable } from '../../server/common-schema.ts'
import { readSmallBody } from '../../server/console/session-route.ts'
import { keyRoute, type KeyRoute } from '../../server/key-route.ts'
import { jsonResponse } from '../../server/route.ts'
import type { Batch, BatchEnding, BatchErrors } from '../batch-store.ts'
import { COMPLETION_WINDOW, type Batches } from '../batches.ts'

/** The batches of a workspace, as the SDKs of OpenAI use them. */

export interface BatchesRouteParts {
  readonly batches: Batches
}

export const EXAMPLE_ID = 'batch_5f0c1b2a3d4e5f6a7b8c9d0e'
const EXAMPLE_SECONDS = 1_763_244_245

const seconds = (description: string) => nullable(Type.Integer(), `${description} Unix seconds.`)

const metadataSchema = Type.Object(
  {},
  { maxProperties: 16, propertyNames: { maxLength: 64 }, additionalProperties: Type.String({ maxLength: 512 }) },
)

export const batchSchema = Type.Object({
  id: Type.String({ example: EXAMPLE_ID }),
  object: Type.Literal('batch'),
  endpoint: Type.String({ example: '/v1/chat/completions' }),
  errors: nullable(
    Type.Object({
      object: Type.Literal('list'),
      count: Type.Integer({ description: 'How many there are. At most 1000 of them are listed.' }),
      data: Type.Array(
        Type.Object({
          code: Type.String(),
          message: Type.String(),
          param: nullable(Type.String()),
          line: nullable(Type.Integer(), 'The number of the line, from 1; null: it concerns the whole batch.'),
        }),
      ),
    }),
    'What is wrong with the batch or its input file.',
  ),
  input_file_id: Type.String({ example: 'file-8c1f7a0d2b3e4f5a6b7c8d9e' }),
  completion_window: Type.Literal(COMPLETION_WINDOW),
  status: Type.Enum([
    'validating',
    'failed',
    'in_progress',
    'finalizing',
    'completed',
    'expired',
    'cancelling',
    'cancelled',
  ]),
  paused: nullable(
    Type.Object({
      code: Type.String(),
      message: Type.String(),
      since: Type.Integer({ description: 'Unix seconds.' }),
    }),
    'Why no line is run now, such as a spend limit that has been reached. It goes on by itself when the reason is gone.',
  ),
  output_file_id: nullable(
    Type.String(),
    'The file with the answers, in the order of the lines; null if there are none.',
  ),
  error_file_id: nullable(
    Type.String(),
    'The file with the lines that failed or were not run; null if there are none.',
  ),
  created_at: Type.Integer({ example: EXAMPLE_SECONDS }),
  in_progress_at: seconds('When its first lines could run.'),
  expires_at: Type.Integer({
    description: 'Lines that have not run then are not run. Unix seconds.',
    example: EXAMPLE_SECONDS + 86_400,
  }),
  finalizing_at: seconds('When its files began to be written.'),
  completed_at: seconds('When all lines had been run.'),
  failed_at: seconds('When it failed.'),
  expired_at: seconds('When it had expired.'),
  cancelling_at: seconds('When it was cancelled.'),
  cancelled_at: seconds('When its last line had ended after that.'),
  request_counts: Type.Object({ total: Type.Integer(), completed: Type.Integer(), failed: Type.Integer() }),
  metadata: nullable(metadataSchema),
})

const batchListSchema = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(batchSchema),
  first_id: nullable(Type.String()),
  last_id: nullable(Type.String()),
  has_more: Type.Boolean(),
})

const newBatchSchema = Type.Object({
  input_file_id: Type.String({ minLength: 1, maxLength: 100 }),
  endpoint: Type.String({ minLength: 1, maxLength: 100 }),
  completion_window: Type.Literal(COMPLETION_WINDOW),
  metadata: Type.Optional(nullable(metadataSchema)),
})

export const parameters = { id: { description: 'The id of a batch.', example: EXAMPLE_ID } }
const everyMember = ['member', 'workspace_admin'] as const

export function batchRoutes({ batches }: BatchesRouteParts): readonly KeyRoute[] {
  return [
    keyRoute({
      method: 'POST',
      path: '/batches',
      id: 'createBatch',
      summary: 'Create a batch',
      description:
        'Runs the requests in a file that was uploaded with purpose=batch, within 24 hours. Each line is {"custom_id", "method": "POST", "url", "body"}, and all have the url that the batch names as its endpoint: /v1/chat/completions, /v1/responses, /v1/messages, /v1/completions, /v1/embeddings, /v1/rerank or /v1/reranking. First all lines are checked; if one is wrong, none is run, and errors lists them. Lines run while their model has free places, as the workspace and the key that created the batch, and are billed one by one. They do not count for rate limits.',
      roles: everyMember,
      request: {
        contentType: 'application/json',
        schema: newBatchSchema,
        example: {
          input_file_id: 'file-8c1f7a0d2b3e4f5a6b7c8d9e',
          endpoint: '/v1/chat/completions',
          completion_window: COMPLETION_WINDOW,
        },
      },
      response: jsonResponse(batchSchema),
      errors: [...bodyErrors, 'quota_exceeded'],
      async answer({ exchange, caller }) {
        const body = await readSmallBody(exchange, newBatchSchema)
        const batch = await batches.create(caller, {
          inputFileId: body.input_file_id,
          endpoint: body.endpoint,
          metadata: (body.metadata ?? null) as Readonly<Record<string, string>> | null,
        })
        exchange.sendJson(JSON.stringify(batchView(batch)))
      },
    }),
    keyRoute({
      method: 'GET',
      path: '/batches',
      id: 'listBatches',
      summary: 'List batches',
      description: 'The batches of the workspace in pages, the newest first.',
      query: Type.Object({
        after: Type.Optional(
          Type.String({ maxLength: 100, description: 'The id of the last batch of the previous page.' }),
        ),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: '1 to 100, by default 20.' })),
      }),
      response: jsonResponse(batchListSchema),
      errors: ['invalid_value', 'not_found'],
      async answer({ exchange, caller, query: { after, limit = 20 } }) {
        const page = await batches.list({ workspaceId: caller.workspace.id, after, limit })
        exchange.sendJson(
          JSON.stringify({
            object: 'list',
            data: page.batches.map(batchView),
            first_id: page.batches[0]?.id ?? null,
            last_id: page.batches.at(-1)?.id ?? null,
            has_more: page.hasMore,
          }),
        )
      },
    }),
    keyRoute({
      method: 'GET',
      path: '/batches/{id}',
      id: 'getBatch',
      summary: 'Show a batch',
      description: 'The state of a batch, how many lines have been run, and the files with the results.',
      parameters,
      response: jsonResponse(batchSchema),
      errors: ['not_found'],
      async answer({ exchange, caller, parameters: { id } }) {
        exchange.sendJson(JSON.stringify(batchView(await batches.batch(caller.workspace.id, id))))
      },
    }),
    keyRoute({
      method: 'POST',
      path: '/batches/{id}/cancel',
      id: 'cancelBatch',
      summary: 'Cancel a batch',
      description:
        'No further line is run. Lines that an engine has finish and are billed; then the batch is cancelled, with the results so far in its output file and all other lines in its error file.',
      parameters,
      roles: everyMember,
      response: jsonResponse(batchSchema),
      errors: ['not_found', 'conflict'],
      async answer({ exchange, caller, parameters: { id } }) {
        exchange.sendJson(JSON.stringify(batchView(await batches.cancel(caller.workspace.id, id))))
      },
    }),
  ]
}

const inSeconds = (ms: number | null): number | null => (ms === null ? null : Math.floor(ms / 1000))

function batchView(batch: Batch): object {
  const { state, errors, pause } = batch
  const endedAs = (ending: BatchEnding): number | null => (state === ending ? inSeconds(batch.endedAt) : null)
  return {
    id: batch.id,
    object: 'batch',
    endpoint: batch.endpoint,
    errors: errors && errorsView(errors),
    input_file_id: batch.inputFileId,
    completion_window: batch.completionWindow,
    status: state,
    paused: pause && { ...pause, since: inSeconds(pause.since) },
    output_file_id: batch.outputFileId,
    error_file_id: batch.errorFileId,
    created_at: inSeconds(batch.createdAt),
    in_progress_at: inSeconds(batch.inProgressAt),
    expires_at: inSeconds(batch.expiresAt),
    finalizing_at: inSeconds(batch.finalizingAt),
    completed_at: endedAs('completed'),
    failed_at: endedAs('failed'),
    expired_at: endedAs('expired'),
    cancelling_at: inSeconds(batch.cancellingAt),
    cancelled_at: endedAs('cancelled'),
    request_counts: batch.counts,
    metadata: batch.metadata,
  }
}

export const errorsView = ({ count, data }: BatchErrors): object => ({
  object: 'list',
  count,
  data: data.map(({ code, message, param, line }) => ({ code, message, param, line: line ?? null })),
})
