import { decodeBase64, isBase64 } from '../../shared/base64.ts'
import type { ByteCollector } from '../../shared/byte-collector.ts'
import { readImageHeader } from '../../shared/image-header.ts'
import type { ParsedAnswer, WholeAnswer } from '../../engines/job.ts'
import { parseWithLargeStrings } from './large-json-strings.ts'
import { noUsage } from '../../billing/rating/rating.ts'
import type { ImagesDialect } from '../../engines/dialects/dialect.ts'
import type { FileStore } from '../../server/files/files.ts'

interface GeneratedImage {
  readonly base64: Buffer
  readonly revisedPrompt: string | undefined
}

/**
 * How to read the engine's images: inline, or as links when there is a store. A separate function, so that
 * the closure does not retain the request body.
 */
export function imagesAnswer(
  dialect: ImagesDialect,
  count: number,
  store: FileStore | undefined,
  owner: string,
): WholeAnswer {
  return {
    kind: 'whole',
    async read(bodies, head) {
      const images = imagesIn(bodies, dialect)?.slice(0, count)
      if (!images || images.length === 0) return undefined
      return store ? linkedImages(images, store, owner, head.created) : inlineImages(images, head.created)
    },
  }
}

/**
 * The engine's images, in order. An engine may generate fewer than requested: those are delivered and billed. undefined
 * if an answer has no image, or something else in place of one.
 */
function imagesIn(bodies: readonly ByteCollector[], dialect: ImagesDialect): readonly GeneratedImage[] | undefined {
  const images: GeneratedImage[] = []
  for (const body of bodies) {
    const json = parseWithLargeStrings(body.whole())
    const output = json && dialect.response(json.value)
    if (!output) return undefined
    for (const { base64, revisedPrompt: text } of output.images) {
      const revisedPrompt = text === undefined ? undefined : json.bytesOf(text).toString('utf8')
      images.push({ base64: json.bytesOf(base64), revisedPrompt })
    }
  }
  return images
}

/** Forwards the engine's base64 without copying it. */
function inlineImages(images: readonly GeneratedImage[], created: number): ParsedAnswer | undefined {
  if (!images.every(({ base64 }) => isBase64(base64))) return undefined
  return {
    usage: { ...noUsage, images: images.length },
    outputBytes: () => 0,
    render() {
      const pieces: Buffer[] = []
      let before = `{"created":${created},"data":[`
      for (const { base64, revisedPrompt } of images) {
        pieces.push(Buffer.from(`${before}{"b64_json":"`), base64)
        before = `"${revisedPromptField(revisedPrompt)}},`
      }
      pieces.push(Buffer.from(`${before.slice(0, -1)}]}`))
      return pieces
    },
  }
}

/** Stores the images one after the other, so that only one is decoded at a time. */
async function linkedImages(
  images: readonly GeneratedImage[],
  store: FileStore,
  owner: string,
  created: number,
): Promise<ParsedAnswer | undefined> {
  const data: string[] = []
  for (const { base64, revisedPrompt } of images) {
    const bytes = decodeBase64(base64)
    if (!bytes) return undefined
    const header = readImageHeader((offset, length) => bytes.subarray(offset, offset + length))
    const url = await store.put(bytes, header?.type ?? 'application/octet-stream', owner)
    data.push(`{"url":${JSON.stringify(url)}${revisedPromptField(revisedPrompt)}}`)
  }
  return {
    usage: { ...noUsage, images: images.length },
    outputBytes: () => 0,
    render: () => `{"created":${created},"data":[${data.join(',')}]}`,
  }
}

function revisedPromptField(prompt: string | undefined): string {
  return prompt === undefined ? '' : `,"revised_prompt":${JSON.stringify(prompt)}`
}
