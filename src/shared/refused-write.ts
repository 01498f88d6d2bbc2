/** The store refused a write and would refuse it again, so retrying is pointless. */
export class RefusedWrite extends Error {}

/**
 * Writes all items at once. If that is refused, writes them in ever smaller halves, so that everything is written
 * except the items that are refused on their own. Any other failure ends it.
 */
export async function writeInParts<Item>(
  items: readonly Item[],
  write: (part: readonly Item[]) => Promise<void>,
  refused: (item: Item, refusal: RefusedWrite) => Promise<void>,
): Promise<void> {
  try {
    return await write(items)
  } catch (error) {
    if (!(error instanceof RefusedWrite)) throw error
    const [first] = items
    if (first === undefined) throw error
    if (items.length === 1) return refused(first, error)
  }
  const middle = Math.ceil(items.length / 2)
  await writeInParts(items.slice(0, middle), write, refused)
  await writeInParts(items.slice(middle), write, refused)
}
