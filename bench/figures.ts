import { appendFileSync } from 'node:fs'

/** How a figure is written down: its unit, and how many decimals are worth showing. */
export interface Precision {
  readonly unit: string
  readonly digits: number
}

const file = process.env['WEIR_FIGURES_FILE']

/** A figure that was measured, with the value of each round. `npm run bench -- NAME --publish` puts it into docs/figures.json. */
export function figure(name: string, { unit, digits }: Precision, values: readonly number[]): void {
  keep(name, { unit, digits, values: values.map((value) => Number(value.toFixed(digits))) })
}

/** A result that is no number. */
export function finding(name: string, text: string): void {
  keep(name, { text })
}

function keep(name: string, content: object): void {
  if (file !== undefined) appendFileSync(file, `${JSON.stringify([name, content])}\n`)
}

export const MICROSECONDS: Precision = { unit: 'µs', digits: 0 }
export const MILLISECONDS: Precision = { unit: 'ms', digits: 1 }
export const MEBIBYTES: Precision = { unit: 'MiB', digits: 0 }
export const RATIO: Precision = { unit: '×', digits: 1 }
