/** The folder of the journal in a data directory, and the files in it. */
export const JOURNAL_FOLDER = 'journal'

const NAME = /^(\d{10})\.journal$/

export function segmentName(segment: number): string {
  return `${String(segment).padStart(10, '0')}.journal`
}

/** The numbers of the segments among the names of a folder, in order. */
export function segmentsAmong(names: readonly string[]): readonly number[] {
  const numbers = names.map((name) => Number(NAME.exec(name)?.[1]))
  return numbers.filter((number) => !Number.isNaN(number)).sort((a, b) => a - b)
}
