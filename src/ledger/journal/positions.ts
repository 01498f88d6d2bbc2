/** A position in the journal. */
export interface JournalPosition {
  readonly segment: number
  readonly offset: number
}

/** A piece of a segment, between the ends of two frames. */
export interface JournalSpan {
  readonly segment: number
  readonly from: number
  readonly to: number
}

export function isAfter(one: JournalPosition, other: JournalPosition): boolean {
  return one.segment > other.segment || (one.segment === other.segment && one.offset > other.offset)
}
