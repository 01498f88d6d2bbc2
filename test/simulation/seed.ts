import { randomInt } from 'node:crypto'

/** A new seed for every run, unless WEIR_SEED repeats an old one. */
export function simulationSeed(): number {
  const given = process.env['WEIR_SEED']
  return given === undefined ? randomInt(2 ** 32) : Number(given)
}
