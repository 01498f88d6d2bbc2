import type { FileWindow } from './file-window.ts'
import { packetBudget } from './packet-counter.ts'

export interface Mp4Box {
  readonly type: string
  readonly start: number
  readonly content: number
  readonly end: number
}

const MAX_BOXES = 200_000
const MAX_DEPTH = 16
const containers: ReadonlySet<string> = new Set([
  'moov',
  'trak',
  'mdia',
  'minf',
  'stbl',
  'edts',
  'mvex',
  'moof',
  'traf',
  'udta',
])

/**
 * Visits all boxes, containers first, in the order of the file. A box ends where its container ends, whatever size it
 * claims, as it does for decoders. false: there are too many, or `visit` returned false.
 */
export async function eachBox(file: FileWindow, visit: (box: Mp4Box) => boolean | Promise<boolean>): Promise<boolean> {
  const ends = [file.length]
  let position = 0
  const budget = packetBudget(MAX_BOXES)
  while (ends.length > 0) {
    const turn = budget.spend()
    if (turn) await turn
    if (budget.isSpent) return false
    const end = ends.at(-1) ?? 0
    const box =
      position + 8 <= end ? readBox(file.peek(position, 16) ?? (await file.at(position, 16)), position, end) : undefined
    if (!box) {
      ends.pop()
      position = end
      continue
    }
    const going = visit(box)
    if (!(going instanceof Promise ? await going : going)) return false
    const isContainer = containers.has(box.type) && ends.length < MAX_DEPTH
    if (isContainer) ends.push(box.end)
    position = isContainer ? box.content : box.end
  }
  return true
}

function readBox(bytes: Buffer, start: number, parentEnd: number): Mp4Box | undefined {
  const short = bytes.readUInt32BE(0)
  const type = bytes.toString('latin1', 4, 8)
  if (short !== 1) {
    if (short > 0 && short < 8) return undefined
    return { type, start, content: start + 8, end: short === 0 ? parentEnd : Math.min(start + short, parentEnd) }
  }
  if (bytes.length < 16) return undefined
  const long = Number(bytes.readBigUInt64BE(8))
  return long < 16 ? undefined : { type, start, content: start + 16, end: Math.min(start + long, parentEnd) }
}
