/**
 * The colour of a model, a key or a workspace: the same on every page and after a reload. The name decides, unless another
 * one of its kind has that colour already; so the choices are kept in this browser.
 */

export type Named = 'model' | 'key' | 'workspace'

/** Names of variables of tokens.css. */
export const ALL = '--ink'
export const OTHERS = '--others'
export const colourAt = (place: number): string => `--line-${place % COLOURS}`

const COLOURS = 12
const NAMES_KEPT = 200
const storedAs = (kind: Named): string => `weir-colours-${kind}`

export function colourOf(kind: Named, name: string): string {
  const places = placesOf(kind)
  const known = places.get(name)
  if (known !== undefined) return colourAt(known)
  const place = freest([...places.values()], hashOf(name) % COLOURS)
  places.set(name, place)
  keep(kind, places)
  return colourAt(place)
}

/** The first of the least used places, from the preferred one on. */
function freest(used: readonly number[], preferred: number): number {
  const order = Array.from({ length: COLOURS }, (_, index) => (preferred + index) % COLOURS)
  const uses = (place: number): number => used.filter((it) => it === place).length
  return order.reduce((best, place) => (uses(place) < uses(best) ? place : best))
}

/** What this page knows, if the browser keeps nothing. */
const known = new Map<Named, Map<string, number>>()

function placesOf(kind: Named): Map<string, number> {
  const places = known.get(kind) ?? new Map(stored(kind))
  known.set(kind, places)
  return places
}

function stored(kind: Named): readonly [string, number][] {
  try {
    const entries = JSON.parse(localStorage.getItem(storedAs(kind)) ?? '[]') as readonly unknown[]
    return entries.filter((it): it is [string, number] => Array.isArray(it) && Number.isInteger(it[1]))
  } catch {
    return []
  }
}

function keep(kind: Named, places: Map<string, number>): void {
  // The oldest ones are forgotten.
  for (const name of [...places.keys()].slice(0, -NAMES_KEPT)) places.delete(name)
  try {
    localStorage.setItem(storedAs(kind), JSON.stringify([...places]))
  } catch {
    // Without storage, colours last as long as the page.
  }
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 2_166_136_261
  for (const character of text) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 16_777_619)
  return hash >>> 0
}
