import OpenAI, { toFile } from 'openai'
import type { Batch } from 'openai/resources/batches'
import type { BatchLine } from './batch-lines.ts'
import { eventually } from './waiting.ts'

/** Batches with the SDK of OpenAI. */

const LONG_MS = 120_000

export const sdkOf = ({ key, base }: { readonly key: string; readonly base: string }): OpenAI =>
  new OpenAI({ apiKey: key, baseURL: base, maxRetries: 0 })

export async function submit(client: OpenAI, lines: readonly (object | string)[], endpoint = '/v1/chat/completions') {
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n')
  const file = await client.files.create({ file: await toFile(Buffer.from(text), 'in.jsonl'), purpose: 'batch' })
  return client.batches.create({
    input_file_id: file.id,
    endpoint: endpoint as '/v1/chat/completions',
    completion_window: '24h',
  })
}

/** Resolves when the batch has one of these states. */
export function reached(client: OpenAI, id: string, ...states: readonly Batch['status'][]): Promise<Batch> {
  return reachedWithin(LONG_MS, client, id, ...states)
}

export async function reachedWithin(
  ms: number,
  client: OpenAI,
  id: string,
  ...states: readonly Batch['status'][]
): Promise<Batch> {
  let batch: Batch | undefined
  await eventually(
    `the batch is ${states.join(' or ')}`,
    async () => {
      batch = await client.batches.retrieve(id)
      return states.includes(batch.status)
    },
    ms,
  )
  return batch!
}

export async function linesIn(client: OpenAI, fileId: string | null | undefined): Promise<readonly BatchLine[]> {
  if (!fileId) return []
  const text = await (await client.files.content(fileId)).text()
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as BatchLine)
}
