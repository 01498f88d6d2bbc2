import type { FileWindow } from './file-window.ts'
import { packetBudget } from './packet-counter.ts'

export interface WebmElement {
  readonly id: number
  readonly content: number
  readonly end: number
}

export const ID = {
  segment: 0x18538067,
  tracks: 0x1654ae6b,
  trackEntry: 0xae,
  trackNumber: 0xd7,
  trackType: 0x83,
  codec: 0x86,
  codecPrivate: 0x63a2,
  codecDelay: 0x56aa,
  contentEncodings: 0x6d80,
  audio: 0xe1,
  samplingFrequency: 0xb5,
  channels: 0x9f,
  bitDepth: 0x6264,
  cluster: 0x1f43b675,
  blockGroup: 0xa0,
  block: 0xa1,
  simpleBlock: 0xa3,
  discardPadding: 0x75a2,
} as const

const masters: ReadonlySet<number> = new Set([
  ID.segment,
  ID.tracks,
  ID.trackEntry,
  ID.audio,
  ID.cluster,
  ID.blockGroup,
])
/** These end an element of unknown size. */
const outermost: ReadonlySet<number> = new Set([ID.segment, ID.tracks, ID.cluster])

const known: ReadonlySet<number> = new Set(Object.values(ID))

/** Elements that are not read count twice. */
const MAX_ELEMENTS = 1_000_000
const MAX_DEPTH = 8
const CLUSTER_START = 0x1f

/**
 * Visits all elements, masters first, in the order of the file. An element that goes past the end of its master is
 * damaged; what follows is the next cluster, as it is for decoders. false: there are too many, or `visit` returned false.
 */
export async function eachElement(
  file: FileWindow,
  visit: (element: WebmElement) => boolean | Promise<boolean>,
): Promise<boolean> {
  let ends: number[] = []
  let position = 0
  const budget = packetBudget(MAX_ELEMENTS)
  while (position < file.length) {
    while (ends.length > 0 && position >= (ends.at(-1) ?? 0)) ends.pop()
    const element = readElement(file.peek(position, 16) ?? (await file.at(position, 16)), position)
    const turn = budget.spend(element && known.has(element.id) ? 1 : 2)
    if (turn) await turn
    if (budget.isSpent) return false
    if (element && outermost.has(element.id)) ends = element.id === ID.segment ? [] : ends.slice(0, 1)
    const isMaster = element !== undefined && masters.has(element.id)
    const isDamaged = !element || (!isMaster && element.end > Math.min(file.length, ends.at(-1) ?? Infinity))
    if (isDamaged) {
      position = await file.find(CLUSTER_START, position + 1, 4, isCluster)
      ends = []
      continue
    }
    const going = visit(element)
    if (!(going instanceof Promise ? await going : going)) return false
    if (isMaster && ends.length < MAX_DEPTH) {
      ends.push(outermost.has(element.id) ? element.end : Math.min(element.end, ends.at(-1) ?? Infinity))
    }
    position = isMaster ? element.content : element.end
  }
  return true
}

function isCluster(bytes: Buffer, at: number): boolean {
  return bytes.length >= at + 4 && bytes.readUInt32BE(at) === ID.cluster
}

function readElement(bytes: Buffer, position: number): WebmElement | undefined {
  const id = readVariable(bytes, 0, false)
  const size = id && readVariable(bytes, id.length, true)
  if (!size || id.length > 4) return undefined
  const content = position + id.length + size.length
  const isUnknown = size.value === 2 ** (7 * size.length) - 1
  return { id: id.value, content, end: isUnknown ? Infinity : content + size.value }
}

/** Reads an EBML variable-length number. The length marker is part of an id, but not of a size. */
export function readVariable(
  bytes: Buffer,
  offset: number,
  dropMarker: boolean,
): { readonly value: number; readonly length: number } | undefined {
  const lead = bytes[offset] ?? 0
  const length = Math.clz32(lead) - 23
  if (lead === 0 || offset + length > bytes.length) return undefined
  let value = dropMarker ? lead & (0xff >>> length) : lead
  for (let index = 1; index < length; index++) value = value * 256 + (bytes[offset + index] ?? 0)
  return { value, length }
}

export function readUnsigned(bytes: Buffer): number {
  return bytes.subarray(0, 8).reduce((sum, byte) => sum * 256 + byte, 0)
}

export function readFloat(bytes: Buffer): number {
  return bytes.length === 8 ? bytes.readDoubleBE(0) : bytes.length === 4 ? bytes.readFloatBE(0) : 0
}
