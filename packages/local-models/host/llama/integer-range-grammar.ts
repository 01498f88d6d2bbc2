/** Fifteen digits stay exact in every JSON reader. */
const MAX_DIGITS = 15

/** A GBNF expression for the whole numbers from `min` to `max`. */
export function integerRange(min: number, max: number): string {
  const ceiling = 10 ** MAX_DIGITS - 1
  const [low, high] = [Math.max(min, -ceiling), Math.min(max, ceiling)]
  const alternatives = [
    ...(low < 0 ? [`"-" ( ${magnitudes(Math.max(1, -high), -low)} )`] : []),
    ...(high >= 0 ? [magnitudes(Math.max(0, low), high)] : []),
  ]
  return alternatives.join(' | ')
}

/** Non-negative numbers: one alternative for each number of digits. */
function magnitudes(low: number, high: number): string {
  const alternatives: string[] = []
  for (let digits = String(low).length; digits <= String(high).length; digits++) {
    const smallest = Math.max(low, digits === 1 ? 0 : 10 ** (digits - 1))
    const largest = Math.min(high, 10 ** digits - 1)
    alternatives.push(sameLength(String(smallest), String(largest)))
  }
  return alternatives.join(' | ')
}

/** The numbers between two digit strings of equal length. Digits after the first that differs are free. */
function sameLength(low: string, high: string): string {
  if (low === '') return ''
  const [first, last] = [Number(low[0]), Number(high[0])]
  const rest = low.length - 1
  const isLowest = /^0*$/.test(low.slice(1))
  const isHighest = /^9*$/.test(high.slice(1))
  if (isLowest && isHighest) return digitClass(first, last) + freeDigits(rest)
  if (first === last) return `"${first}" ( ${sameLength(low.slice(1), high.slice(1))} )`
  const middleFirst = isLowest ? first : first + 1
  const middleLast = isHighest ? last : last - 1
  return [
    ...(isLowest ? [] : [`"${first}" ( ${sameLength(low.slice(1), '9'.repeat(rest))} )`]),
    ...(middleFirst <= middleLast ? [digitClass(middleFirst, middleLast) + freeDigits(rest)] : []),
    ...(isHighest ? [] : [`"${last}" ( ${sameLength('0'.repeat(rest), high.slice(1))} )`]),
  ].join(' | ')
}

function digitClass(first: number, last: number): string {
  return first === last ? `"${first}"` : `[${first}-${last}]`
}

function freeDigits(count: number): string {
  return count === 0 ? '' : ` [0-9]{${count}}`
}
