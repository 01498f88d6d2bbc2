/** `npm run test:slow` runs every test file that imports this one again, with the long counts. */
export const isLongRun = process.env['WEIR_LONG_RUN'] === '1'

/** For a test that only `npm run test:slow` runs. */
export const inLongRun = { skip: isLongRun ? false : 'npm run test:slow runs it' }

/** How many cases a test tries: the first number in `npm test`, the second in `npm run test:slow`. */
export function runLength(short: number, long: number): number {
  return isLongRun ? long : short
}

/** Some of the cases, from all over the list; in a long run all of them. */
export function someOf<Case>(cases: readonly Case[], count: number): readonly Case[] {
  if (isLongRun || cases.length <= count) return cases
  return Array.from({ length: count }, (_, index) => cases[Math.floor(((index + 0.5) * cases.length) / count)] as Case)
}
