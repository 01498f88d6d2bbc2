import { Type } from 'typebox'
import { ApiError } from '../../shared/errors.ts'
import { requireValid } from '../../shared/json/schema-check.ts'
import { binarySchema, nullable } from '../../server/common-schema.ts'
import { keyRoute, type KeyRoute } from '../../server/key-route.ts'
import { jsonResponse } from '../../server/route.ts'
import { withUpload, type Upload } from '../../server/uploads/upload.ts'
import type { Spool } from '../../server/uploads/uploads.ts'
import type { StoredFile } from '../file-store.ts'
import type { BatchFiles } from '../files.ts'

/** The files of a workspace, as the SDKs of OpenAI use them. */

export interface FilesParts {
  readonly batchFiles: BatchFiles
  readonly spool: Spool
  readonly batchLimits: { readonly maxFileBytes: number }
}

const MAX_FILENAME = 255

const fileSchema = Type.Object({
  id: Type.String({ example: 'file-8c1f7a0d2b3e4f5a6b7c8d9e' }),
  object: Type.Literal('file'),
  bytes: Type.Integer({ example: 1024 }),
  created_at: Type.Integer({ description: 'Unix seconds.', example: 1_763_244_245 }),
  expires_at: Type.Integer({ description: 'It is deleted then. Unix seconds.', example: 1_765_836_245 }),
  filename: Type.String({ example: 'questions.jsonl' }),
  purpose: Type.Enum(['batch', 'batch_output']),
  status: Type.Literal('processed'),
})

const fileListSchema = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(fileSchema),
  first_id: nullable(Type.String()),
  last_id: nullable(Type.String()),
  has_more: Type.Boolean(),
})

const deletedSchema = Type.Object({
  id: Type.String({ example: 'file-8c1f7a0d2b3e4f5a6b7c8d9e' }),
  object: Type.Literal('file'),
  deleted: Type.Literal(true),
})

const formSchema = Type.Object({
  file: binarySchema,
  purpose: Type.Literal('batch'),
  expires_after: Type.Optional(
    Type.Object(
      {
        anchor: Type.Literal('created_at'),
        seconds: Type.Integer({ minimum: 3600, maximum: 2_592_000 }),
      },
      { description: 'When the file is deleted, if that is earlier than the operator has set.' },
    ),
  ),
})

const parameters = { id: { description: 'The id of a file.', example: 'file-8c1f7a0d2b3e4f5a6b7c8d9e' } }
const everyMember = ['member', 'workspace_admin'] as const

export function batchFileRoutes({ batchFiles, spool, batchLimits }: FilesParts): readonly KeyRoute[] {
  return [
    keyRoute({
      method: 'POST',
      path: '/files',
      id: 'uploadFile',
      summary: 'Upload a file',
      description:
        'Stores a JSONL file with the requests of a batch, one in each line. The form has the file and purpose=batch. Files are deleted after some days (30 unless the operator changed it).',
      roles: everyMember,
      request: {
        contentType: 'multipart/form-data',
        schema: formSchema,
        example: { file: '@questions.jsonl', purpose: 'batch' },
      },
      response: jsonResponse(fileSchema),
      errors: [
        'missing_required_parameter',
        'invalid_value',
        'quota_exceeded',
        'request_timeout',
        'request_too_large',
        'unsupported_media_type',
      ],
      answer: ({ exchange, caller }) =>
        withUpload(exchange, spool, batchLimits.maxFileBytes, async ({ file, fileName, fields }) => {
          if (!file) {
            throw new ApiError('missing_required_parameter', "Missing required parameter: 'file'.", { param: 'file' })
          }
          const expiresAfter = readExpiry(fields)
          requireValid(formSchema, { file: '', purpose: fields.get('purpose')?.[0], expires_after: expiresAfter })
          const name = fileName.replaceAll(/\p{Cc}+/gu, '').slice(0, MAX_FILENAME) || 'upload.jsonl'
          const keptMs = expiresAfter && expiresAfter.seconds * 1000
          const stored = await batchFiles.upload(caller.workspace.id, name, file, keptMs)
          exchange.sendJson(JSON.stringify(fileView(stored)))
        }),
    }),
    keyRoute({
      method: 'GET',
      path: '/files',
      id: 'listFiles',
      summary: 'List files',
      description: 'The files of the workspace in pages: uploads, and the results of batches.',
      query: Type.Object({
        purpose: Type.Optional(
          Type.Enum(['batch', 'batch_output'], { description: 'batch: uploads. batch_output: results.' }),
        ),
        order: Type.Optional(Type.Enum(['asc', 'desc'], { description: 'By time, by default the newest first.' })),
        after: Type.Optional(
          Type.String({ maxLength: 100, description: 'The id of the last file of the previous page.' }),
        ),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000, description: '1 to 10000, by default 100.' })),
      }),
      response: jsonResponse(fileListSchema),
      errors: ['invalid_value', 'not_found'],
      async answer({ exchange, caller, query: { order = 'desc', limit = 100, ...query } }) {
        const page = await batchFiles.list({ workspaceId: caller.workspace.id, order, limit, ...query })
        exchange.sendJson(
          JSON.stringify({
            object: 'list',
            data: page.files.map(fileView),
            first_id: page.files[0]?.id ?? null,
            last_id: page.files.at(-1)?.id ?? null,
            has_more: page.hasMore,
          }),
        )
      },
    }),
    keyRoute({
      method: 'GET',
      path: '/files/{id}',
      id: 'getFile',
      summary: 'Show a file',
      description: 'The name, size and purpose of a file.',
      parameters,
      response: jsonResponse(fileSchema),
      errors: ['not_found'],
      async answer({ exchange, caller, parameters: { id } }) {
        exchange.sendJson(JSON.stringify(fileView(await batchFiles.file(caller.workspace.id, id))))
      },
    }),
    keyRoute({
      method: 'GET',
      path: '/files/{id}/content',
      id: 'getFileContent',
      summary: 'Download a file',
      description: 'The bytes of a file.',
      parameters,
      response: {
        status: 200,
        content: { 'application/jsonl': { schema: binarySchema, example: '{"custom_id":"1"}\n' } },
      },
      errors: ['not_found'],
      async answer({ exchange, caller, parameters: { id } }) {
        const file = await batchFiles.file(caller.workspace.id, id)
        await exchange.sendStream(await batchFiles.read(file, 0, file.bytes), {
          'Content-Type': 'application/jsonl',
          'Content-Length': String(file.bytes),
          'Content-Disposition': 'attachment',
          'X-Content-Type-Options': 'nosniff',
        })
      },
    }),
    keyRoute({
      method: 'DELETE',
      path: '/files/{id}',
      id: 'deleteFile',
      summary: 'Delete a file',
      description: 'Deletes a file.',
      parameters,
      roles: everyMember,
      response: jsonResponse(deletedSchema),
      errors: ['not_found', 'conflict'],
      async answer({ exchange, caller, parameters: { id } }) {
        await batchFiles.remove(await batchFiles.file(caller.workspace.id, id))
        exchange.sendJson(JSON.stringify({ id, object: 'file', deleted: true }))
      },
    }),
  ]
}

/** SDKs write an object of a form as one field for each of its members. */
function readExpiry(
  fields: Upload['fields'],
): { readonly anchor: string | undefined; readonly seconds: number } | undefined {
  const [anchor, seconds] = ['anchor', 'seconds'].map((name) => fields.get(`expires_after[${name}]`)?.[0])
  return anchor === undefined && seconds === undefined ? undefined : { anchor, seconds: Number(seconds) }
}

function fileView({ id, bytes, createdAt, expiresAt, filename, purpose }: StoredFile): object {
  return {
    id,
    object: 'file',
    bytes,
    created_at: Math.floor(createdAt / 1000),
    expires_at: Math.floor(expiresAt / 1000),
    filename,
    purpose,
    status: 'processed',
  }
}
