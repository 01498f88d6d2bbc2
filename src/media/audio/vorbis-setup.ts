/**
 * Which modes of a Vorbis stream have long blocks, from its setup header (Vorbis I, section 4.2.4). The modes are at its
 * end, so everything before them has to be read. undefined: the header is not valid.
 */
export function longModes(setup: Buffer, channels: number): readonly boolean[] | undefined {
  if (setup.toString('latin1', 0, 7) !== '\x05vorbis') return undefined
  const bits = bitReader(setup.subarray(7))
  const books = bits.read(8) + 1
  for (let index = 0; index < books; index++) if (!skipCodebook(bits)) return undefined
  bits.skip((bits.read(6) + 1) * 16)
  const parts = [skipFloor, skipResidue, (it: Bits) => skipMapping(it, channels)]
  for (const skipPart of parts) {
    const count = bits.read(6) + 1
    for (let index = 0; index < count; index++) if (!skipPart(bits)) return undefined
  }
  const modes = Array.from({ length: bits.read(6) + 1 }, () => {
    const isLong = bits.read(1) === 1
    bits.skip(16 + 16 + 8)
    return isLong
  })
  return bits.read(1) === 1 && !bits.isPastEnd() ? modes : undefined
}

interface Bits {
  /** Up to 32 bits. */
  read(count: number): number
  skip(count: number): void
  isPastEnd(): boolean
}

/** Vorbis packs from the least significant bit on. Zeros follow the end. */
function bitReader(bytes: Buffer): Bits {
  let position = 0
  return {
    read(count) {
      let value = 0
      for (let index = 0; index < count; index++, position++) {
        value += (((bytes[position >>> 3] ?? 0) >>> (position & 7)) & 1) * 2 ** index
      }
      return value
    },
    skip(count) {
      position += count
    },
    isPastEnd: () => position > bytes.length * 8,
  }
}

const CODEBOOK = 0x564342

function skipCodebook(bits: Bits): boolean {
  if (bits.read(24) !== CODEBOOK) return false
  const dimensions = bits.read(16)
  const entries = bits.read(24)
  if (bits.read(1) === 1) skipOrderedLengths(bits, entries)
  else if (bits.read(1) === 0) bits.skip(entries * 5)
  else for (let entry = 0; entry < entries && !bits.isPastEnd(); entry++) if (bits.read(1) === 1) bits.skip(5)
  const lookup = bits.read(4)
  if (lookup > 2) return false
  if (lookup > 0) {
    bits.skip(64)
    const valueBits = bits.read(4) + 1
    bits.skip(1)
    bits.skip(valueBits * (lookup === 1 ? latticeValues(entries, dimensions) : entries * dimensions))
  }
  return !bits.isPastEnd()
}

function skipOrderedLengths(bits: Bits, entries: number): void {
  bits.skip(5)
  for (let entry = 0; entry < entries && !bits.isPastEnd();) entry += bits.read(bitLength(entries - entry))
}

/** The largest number that, to the power of `dimensions`, is not more than `entries`. */
function latticeValues(entries: number, dimensions: number): number {
  if (dimensions === 0) return 0
  let values = Math.floor(entries ** (1 / dimensions))
  while ((values + 1) ** dimensions <= entries) values++
  while (values > 0 && values ** dimensions > entries) values--
  return values
}

function skipFloor(bits: Bits): boolean {
  const type = bits.read(16)
  if (type === 0) {
    bits.skip(8 + 16 + 16 + 6 + 8)
    bits.skip((bits.read(4) + 1) * 8)
    return !bits.isPastEnd()
  }
  if (type !== 1) return false
  const classOfPartition = Array.from({ length: bits.read(5) }, () => bits.read(4))
  const dimensions = Array.from({ length: Math.max(-1, ...classOfPartition) + 1 }, () => {
    const size = bits.read(3) + 1
    const subclassBits = bits.read(2)
    if (subclassBits > 0) bits.skip(8)
    bits.skip(8 * 2 ** subclassBits)
    return size
  })
  bits.skip(2)
  const rangeBits = bits.read(4)
  bits.skip(rangeBits * classOfPartition.reduce((sum, it) => sum + (dimensions[it] ?? 0), 0))
  return !bits.isPastEnd()
}

function skipResidue(bits: Bits): boolean {
  if (bits.read(16) > 2) return false
  bits.skip(24 + 24 + 24)
  const classifications = bits.read(6) + 1
  bits.skip(8)
  let books = 0
  for (let index = 0; index < classifications; index++) {
    const low = bits.read(3)
    const high = bits.read(1) === 1 ? bits.read(5) : 0
    books += ones(high * 8 + low)
  }
  bits.skip(books * 8)
  return !bits.isPastEnd()
}

function skipMapping(bits: Bits, channels: number): boolean {
  if (bits.read(16) !== 0) return false
  const submaps = bits.read(1) === 1 ? bits.read(4) + 1 : 1
  const couplings = bits.read(1) === 1 ? bits.read(8) + 1 : 0
  bits.skip(couplings * 2 * bitLength(channels - 1))
  if (bits.read(2) !== 0) return false
  if (submaps > 1) bits.skip(channels * 4)
  bits.skip(submaps * 24)
  return !bits.isPastEnd()
}

/** How many bits a number needs: 0 for 0, 3 for 7. */
export function bitLength(value: number): number {
  return 32 - Math.clz32(value)
}

function ones(value: number): number {
  let count = 0
  for (let rest = value; rest > 0; rest &= rest - 1) count++
  return count
}
