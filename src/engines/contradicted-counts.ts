/** A deployment whose engine counts input tokens in a way that contradicts the text. */
export interface ContradictedCounts {
  readonly lane: string
  readonly kind: string
  /** How many answers had such a count. */
  readonly answers: number
  /** The latest of these counts, and the bounds that were expected. */
  readonly counted: number
  readonly least: number
  readonly most: number
}
