import * as fc from 'fast-check'

/** The first half of a UTF-16 pair, and how many halves there are. Alone, they are no characters. */
const FIRST_HALF = 0xd800
const HALVES = 0x800

/**
 * Any character of Unicode, as a unit of `fc.string`, which makes the same texts of it as of its own unit 'binary'. That one
 * first makes a map of all characters, which takes a second of processor time and 150 MB.
 */
export const anyCharacter = fc.nat({ max: 0x10ffff - HALVES }).map(
  (index) => String.fromCodePoint(index < FIRST_HALF ? index : index + HALVES),
  (value) => {
    const code = typeof value === 'string' ? value.codePointAt(0) : undefined
    if (code === undefined || value !== String.fromCodePoint(code)) throw new Error('not a single character')
    return code < FIRST_HALF ? code : code - HALVES
  },
)
