import { grouped } from './money/money.ts'

/** "12,500" */
export function count(value: number): string {
  return grouped(String(value))
}

/** "1 key", "2 keys". */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`
}
