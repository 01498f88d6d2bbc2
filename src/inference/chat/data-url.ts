import { decodedLength, decodedSlice, isBase64 } from '../../shared/base64.ts'
import { imageProblem, readImageHeader, type ImageLimits } from '../../shared/image-header.ts'
import { invalidParameter } from '../../shared/json/schema-check.ts'

const START = /^data:(image\/(?:png|jpeg|jpg|webp|gif));base64,/

/**
 * Throws unless a data URL holds an image of the type it declares, within the limits. The base64 is checked
 * in one pass, and only the image header is decoded.
 */
export function requireDataUrl(url: string, limits: ImageLimits, param: string): void {
  const [start, declared] = START.exec(url) ?? []
  if (start === undefined) {
    throw invalidParameter('invalid_value', param, 'a data: URL with a png, jpeg, webp or gif in base64')
  }
  const base64 = url.slice(start.length)
  const length = decodedLength(base64)
  const read = (offset: number, count: number): Buffer => decodedSlice(base64, offset, count)
  const problem = length === undefined ? 'padded base64 after the comma' : imageProblem(read, length, limits)
  if (problem !== undefined) throw invalidParameter('invalid_value', param, problem)
  const type = readImageHeader(read)?.type
  if (type !== declared?.replace('jpg', 'jpeg')) {
    throw invalidParameter('invalid_value', param, `an ${declared} as its media type says, but the content is ${type}`)
  }
  if (!isBase64(base64)) throw invalidParameter('invalid_value', param, 'valid base64 after the comma')
}
