const WEIGHTS = [10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19] as const

/** The eleven digits of an Australian Business Number, or undefined when it is not valid. */
export function parseAbn(text: string): string | undefined {
  const digits = text.replaceAll(/\s/g, '')
  if (!/^[1-9]\d{10}$/.test(digits)) return undefined
  // The check: subtract one from the first digit; the weighted sum must be a multiple of 89.
  const sum = WEIGHTS.reduce(
    (total, weight, index) => total + weight * (Number(digits[index]) - (index === 0 ? 1 : 0)),
    0,
  )
  return sum % 89 === 0 ? digits : undefined
}

/** "51 824 753 556" */
export function formatAbn(digits: string): string {
  return digits.replace(/^(\d{2})(\d{3})(\d{3})(\d{3})$/, '$1 $2 $3 $4')
}
