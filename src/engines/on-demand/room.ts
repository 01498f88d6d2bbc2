/** How to make room for an engine: which others sleep or end. Pure; a part of scheduler.ts. */

/** Of each resource: bytes of a device, or 1 of what only one engine can have. */
export type Amounts = ReadonlyMap<string, number>

/** What there is of each resource. There is 1 of those without a budget. */
export type Budgets = Amounts

/** Another engine. */
export interface Evictable {
  readonly held: Amounts
  /** What it will have when its end or its falling asleep is over; undefined: nothing is under way. */
  readonly leaves: Amounts | undefined
  readonly isEvictable: boolean
  readonly isPinned: boolean
  /** What it would have asleep; undefined: it cannot sleep now. */
  readonly asleep: Amounts | undefined
  /** The lowest gives way first. */
  readonly rank: readonly [isBusy: number, time: number]
}

export interface Victim {
  readonly index: number
  readonly kind: 'stop' | 'sleep'
}

export type RoomPlan =
  | { readonly kind: 'fits' }
  /** Room becomes free by what is already under way, or what others do next. */
  | { readonly kind: 'wait' }
  | { readonly kind: 'evict'; readonly victims: readonly Victim[] }
  /** What is pinned leaves no room. */
  | { readonly kind: 'never' }

const nothing: Amounts = new Map()

export function planRoom(needs: Amounts, budgets: Budgets, others: readonly Evictable[]): RoomPlan {
  const fitsBeside = (amountsOf: (other: Evictable, index: number) => Amounts): boolean =>
    needs.entries().every(([resource, need]) => {
      const used = others.reduce((sum, other, index) => sum + (amountsOf(other, index).get(resource) ?? 0), 0)
      return used + need <= (budgets.get(resource) ?? 1)
    })

  if (fitsBeside(({ held }) => held)) return { kind: 'fits' }
  if (!fitsBeside(({ held, isPinned }) => (isPinned ? held : nothing))) return { kind: 'never' }
  if (fitsBeside(({ held, leaves }) => leaves ?? held)) return { kind: 'wait' }

  const evictable = others
    .map((other, index) => ({ ...other, index }))
    .filter(({ isEvictable }) => isEvictable)
    .toSorted((one, other) => one.rank[0] - other.rank[0] || one.rank[1] - other.rank[1])
  /** Those that have to give way, if each that does leaves `left`. undefined if that is not enough. */
  const choose = (left: (other: Evictable) => Amounts): readonly number[] | undefined => {
    const chosen = new Set<number>()
    const fits = (): boolean =>
      fitsBeside((other, index) => (chosen.has(index) ? left(other) : (other.leaves ?? other.held)))
    for (const { index } of evictable) {
      chosen.add(index)
      if (fits()) break
    }
    if (!fits()) return undefined
    // A large one may have made earlier ones unnecessary.
    for (const index of Array.from(chosen)) {
      chosen.delete(index)
      if (!fits()) chosen.add(index)
    }
    return [...chosen]
  }
  const sleeping = choose(({ asleep }) => asleep ?? nothing)
  if (sleeping) {
    return {
      kind: 'evict',
      victims: sleeping.map((index) => ({ index, kind: others[index]?.asleep ? 'sleep' : 'stop' })),
    }
  }
  const stopping = choose(() => nothing)
  return stopping ? { kind: 'evict', victims: stopping.map((index) => ({ index, kind: 'stop' })) } : { kind: 'wait' }
}
