/** The pause after so many failures in a row: the first one, doubled with each further failure, up to a maximum. */
export function backoffMs(failures: number, firstMs: number, maxMs: number): number {
  return Math.min(maxMs, firstMs * 2 ** (failures - 1))
}
