import { sydneyTime } from '../../shared/money/sydney-time.ts'

/**
 * Times are shown in Sydney time, like everywhere in the ledger. Headings name the zone, because most machines run in
 * UTC.
 */
export const ZONE = 'Sydney'

/** "2026-11-15 21:03", or null for no time. */
export function minuteText(at: number | string | null): string | null {
  return at === null ? null : sydneyTime(instantOf(at)).slice(0, 16)
}

/** "2026-11-15 21:03:12" */
export function secondText(at: number | string): string {
  return sydneyTime(instantOf(at))
}

/** "2026-11-15" */
export function dayText(at: number | string | null): string | null {
  return at === null ? null : sydneyTime(instantOf(at)).slice(0, 10)
}

function instantOf(at: number | string): number {
  return typeof at === 'number' ? at : Date.parse(at)
}
