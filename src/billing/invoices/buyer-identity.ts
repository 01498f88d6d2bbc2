import type { Cents } from '../../shared/money/money.ts'

/** From A$1,000 including GST, the law requires a tax invoice to identify the buyer: a name and an identifier. */
export const BUYER_REQUIRED_FROM: Cents = 100_000n

/** What the operator knows about a buyer. */
export interface BuyerDetails {
  readonly name: string | null
  readonly abn: string | null
  readonly address: string | null
}

/** What a tax invoice of A$1,000 or more still lacks, such as "the buyer's name"; empty if it is complete. */
export function missingOfBuyer({ name, abn, address }: BuyerDetails): readonly string[] {
  return [
    ...(isBlank(name) ? ["the buyer's name"] : []),
    ...(isBlank(abn) && isBlank(address) ? ["the buyer's ABN (or its address, if it has no ABN)"] : []),
  ]
}

function isBlank(text: string | null): boolean {
  return text === null || text.trim() === ''
}
