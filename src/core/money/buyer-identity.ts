import type { Cents } from './money.ts'

/** From A$1,000 including GST on, the law wants a tax invoice to show who the buyer is: a name and what identifies it. */
export const BUYER_REQUIRED_FROM: Cents = 100_000n

/** What the operator knows about a buyer. */
export interface BuyerDetails {
  readonly name: string | null
  readonly abn: string | null
  readonly address: string | null
}

/** What a tax invoice of A$1,000 or more still needs, such as "the buyer's name"; empty if it has everything. */
export function missingOfBuyer({ name, abn, address }: BuyerDetails): readonly string[] {
  return [
    ...(isBlank(name) ? ["the buyer's name"] : []),
    ...(isBlank(abn) && isBlank(address) ? ["the buyer's ABN (or its address, if it has no ABN)"] : []),
  ]
}

function isBlank(text: string | null): boolean {
  return text === null || text.trim() === ''
}
