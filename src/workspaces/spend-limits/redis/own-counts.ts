import type { PicoAud } from '../../../shared/money/money.ts'

interface Count {
  settled: PicoAud
  /** How much of it is certainly in the database. */
  delivered: PicoAud
}

/** What this replica has settled for one workspace, by month. */
export function ownCounts() {
  const months = new Map<number, Count>()
  let settledEver = 0n

  function countOf(month: number): Count {
    let count = months.get(month)
    if (!count) months.set(month, (count = { settled: 0n, delivered: 0n }))
    return count
  }

  return {
    /** In all months. */
    ever: (): PicoAud => settledEver,
    settledIn: (month: number): PicoAud => countOf(month).settled,
    settle(month: number, amount: PicoAud): void {
      settledEver += amount
      countOf(month).settled += amount
    },
    /** This month, later ones that began before the clock was set back, and earlier ones not completely in the database yet. */
    toReport(month: number): ReadonlyMap<number, Readonly<Count>> {
      const others = [...months].filter(
        ([it, count]) => it > month || (it < month && count.settled !== count.delivered),
      )
      return new Map([...others, [month, { ...countOf(month) }]])
    },
    /** Call the returned function when the database has everything settled so far; undefined if it already has. */
    deliver(): (() => void) | undefined {
      const marks = [...months].filter(([, it]) => it.settled !== it.delivered)
      if (marks.length === 0) return undefined
      const reached = marks.map(([month, it]) => [month, it.settled] as const)
      return () => {
        for (const [month, amount] of reached) countOf(month).delivered = amount
      }
    },
  }
}
