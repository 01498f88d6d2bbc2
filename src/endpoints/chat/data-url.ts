import { decodedLength, decodedSlice, isBase64 } from '../../core/base64.ts'
import { imageProblem, readImageHeader, type ImageLimits } from '../../core/image-header.ts'
import { invalidParameter } from '../../core/parameter-errors.ts'

const START = /^data:(image\/(?:png|jpeg|jpg|webp|gif));base64,/

/**
 * An image in a data URL is what it says it is, and not too large. Its text is crossed once, for the base64;
 * of the bytes only the header is decoded.
 */
export function requireDataUrl(url: string, limits: ImageLimits, param: string): void {
  const [start, declared] = START.exec(url) ?? []
  if (start === undefined) {
    throw invalidParameter('invalid_value', param, 'a data: URL of a png, jpeg, webp or gif in base64')
  }
  const base64 = url.slice(start.length)
  const length = decodedLength(base64)
  const read = (offset: number, count: number): Buffer => decodedSlice(base64, offset, count)
  const problem = length === undefined ? 'padded base64 behind the comma' : imageProblem(read, length, limits)
  if (problem !== undefined) throw invalidParameter('invalid_value', param, problem)
  const type = readImageHeader(read)?.type
  if (type !== declared?.replace('jpg', 'jpeg')) {
    throw invalidParameter('invalid_value', param, `the ${declared} that it says it is; the content is ${type}`)
  }
  if (!isBase64(base64)) throw invalidParameter('invalid_value', param, 'valid base64 behind the comma')
}
