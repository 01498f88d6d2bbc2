import { withoutTrailing } from '../without-trailing.ts'
import { grouped } from './money.ts'

/** Milliseconds in full, so that nothing is lost to rounding: "743 h", "12 h 3 min 0.25 s", "62 min 5.5 s". */
export function exactDuration(ms: bigint, largest: 'h' | 'min'): string {
  const length = ms < 0n ? -ms : ms
  const hours = largest === 'h' ? length / 3_600_000n : 0n
  const minutes = (length - hours * 3_600_000n) / 60_000n
  const rest = length % 60_000n
  const parts = [
    ...(hours > 0n ? [`${grouped(String(hours))} h`] : []),
    ...(minutes > 0n ? [`${grouped(String(minutes))} min`] : []),
    ...(rest > 0n ? [`${secondsText(rest)} s`] : []),
  ]
  return (ms < 0n ? '-' : '') + (parts.length === 0 ? `0 ${largest}` : parts.join(' '))
}

function secondsText(ms: bigint): string {
  const fraction = withoutTrailing(String(ms % 1000n).padStart(3, '0'), '0')
  return `${ms / 1000n}${fraction === '' ? '' : `.${fraction}`}`
}
