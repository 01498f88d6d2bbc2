/** Writes GGUF files (version 3), with as much as a small encoder needs. */

export type Values = Readonly<Record<string, Value>>
type Value = string | number | boolean | Float | Exact | readonly string[] | readonly number[]

/** A number that is always written as a float. */
interface Float {
  readonly float: number
}

/** A number of this type; others are uint32. */
type Exact = { readonly uint16: number } | { readonly int32: number }

export interface Tensor {
  readonly name: string
  /** The length of a row first, as ggml counts. */
  readonly dimensions: readonly number[]
  readonly data: Float32Array
}

const ALIGNMENT = 32
const types = { uint16: 2, uint32: 4, int32: 5, float32: 6, bool: 7, string: 8, array: 9 }
const FLOAT32_TENSOR = 0

export function ggufFile(values: Values, tensors: readonly Tensor[]): Buffer {
  const entries = Object.entries(values)
  const parts = [Buffer.from('GGUF'), uint32(3), uint64(tensors.length), uint64(entries.length)]
  for (const [name, value] of entries) parts.push(string(name), typed(value))
  let offset = 0
  for (const { name, dimensions, data } of tensors) {
    parts.push(
      string(name),
      uint32(dimensions.length),
      ...dimensions.map(uint64),
      uint32(FLOAT32_TENSOR),
      uint64(offset),
    )
    offset += aligned(data.byteLength)
  }
  const head = padded(Buffer.concat(parts))
  return Buffer.concat([head, ...tensors.map(({ data }) => padded(Buffer.from(data.buffer)))])
}

function typed(value: Value): Buffer {
  if (typeof value === 'string') return Buffer.concat([uint32(types.string), string(value)])
  if (typeof value === 'boolean') return Buffer.concat([uint32(types.bool), Buffer.of(value ? 1 : 0)])
  if (typeof value === 'number') return Buffer.concat([uint32(types.uint32), uint32(value)])
  if ('uint16' in value) return Buffer.concat([uint32(types.uint16), Buffer.from(Uint16Array.of(value.uint16).buffer)])
  if ('int32' in value) return Buffer.concat([uint32(types.int32), uint32(value.int32)])
  if ('float' in value) return Buffer.concat([uint32(types.float32), Buffer.from(Float32Array.of(value.float).buffer)])
  const isText = typeof value[0] === 'string'
  const items = value.map((item) => (typeof item === 'string' ? string(item) : uint32(item)))
  return Buffer.concat([
    uint32(types.array),
    uint32(isText ? types.string : types.int32),
    uint64(value.length),
    ...items,
  ])
}

function string(text: string): Buffer {
  const bytes = Buffer.from(text)
  return Buffer.concat([uint64(bytes.length), bytes])
}

function uint32(value: number): Buffer {
  return Buffer.from(Uint32Array.of(value).buffer)
}

function uint64(value: number): Buffer {
  return Buffer.from(BigUint64Array.of(BigInt(value)).buffer)
}

function aligned(length: number): number {
  return Math.ceil(length / ALIGNMENT) * ALIGNMENT
}

function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes], aligned(bytes.length))
}
