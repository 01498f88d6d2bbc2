import { Type } from 'typebox'
import { parseMonth, type Month } from '../../../shared/money/sydney-time.ts'
import { invalidParameter } from '../../../shared/json/schema-check.ts'

/** A month, as requests name it. */
export const periodSchema = Type.String({
  maxLength: 64,
  description: 'A month in Sydney, such as 2026-11.',
  example: '2026-11',
})

export function monthIn(text: string): Month {
  const month = parseMonth(text)
  if (!month) throw invalidParameter('invalid_value', 'period', 'a month such as 2026-11')
  return month
}
