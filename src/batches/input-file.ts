import type { Readable } from 'node:stream'
import { isNotFound } from '../shared/errors.ts'
import type { Batch, BatchError, LineRange } from './batch-store.ts'
import type { BatchFiles } from './files.ts'
import { fileLines } from './lines.ts'

export const withoutContent: BatchError = {
  code: 'not_found',
  message: 'The content of the input file is missing. Upload it again.',
  param: 'input_file_id',
}

export const withoutStorage: BatchError = {
  code: 'service_unavailable',
  message: 'No service had the storage of the input file until the batch expired. Upload it again.',
  param: 'input_file_id',
}

type InputFile = Pick<Batch, 'workspaceId' | 'inputFileId' | 'place'>

/** The bytes from `start` to before `end`. undefined if the file is gone for good; throws while its storage is away. */
export async function readInput(
  files: BatchFiles,
  { workspaceId, inputFileId, place }: InputFile,
  start: number,
  end: number,
): Promise<Readable | undefined> {
  if (place !== files.place) return undefined
  try {
    return await files.read(await files.file(workspaceId, inputFileId), start, end)
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

/** The lines of a range, which is small, and whose lines have been checked. undefined if the file is gone for good. */
export async function readRange(
  files: BatchFiles,
  batch: InputFile,
  { byteStart, byteEnd, firstLine }: LineRange,
): Promise<readonly { readonly number: number; readonly bytes: Buffer }[] | undefined> {
  const stream = await readInput(files, batch, byteStart, byteEnd)
  if (!stream) return undefined
  const lines = await Array.fromAsync(fileLines(stream, { number: firstLine, start: byteStart }, Infinity))
  return lines.map(({ number, bytes = Buffer.alloc(0) }) => ({ number, bytes }))
}
