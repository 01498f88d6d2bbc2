/**
 * Reads a snapshot and puts it in force. Reads may overlap, and end in a different order than they began. One that
 * began before the read in force is dropped: it may lack a change that was confirmed in the meantime.
 */
export function newestRead<Snapshot>(
  read: () => Promise<Snapshot>,
  putInForce: (snapshot: Snapshot) => void,
): () => Promise<void> {
  let begun = 0
  let inForce = 0
  return async () => {
    const own = ++begun
    const snapshot = await read()
    if (own < inForce) return
    inForce = own
    putInForce(snapshot)
  }
}
