import { asRecord } from '../../dialects/reading.ts'

/** What a model wrote for a tool call, or for a piece of one in a stream. */
export function toolCallText(call: unknown): string {
  const { name, arguments: text } = asRecord(asRecord(call)['function'])
  return [name, text].filter((it) => typeof it === 'string' && it !== '').join(' ')
}

/** The calls with only as much of their arguments as `keep` returns, without those that have nothing left. */
export function cutToolCalls(calls: readonly unknown[], keep: (text: string) => string): readonly object[] {
  return calls.map(asRecord).flatMap((call) => {
    const written = asRecord(call['function'])
    const { name, arguments: text } = written
    if (typeof name === 'string' && keep(name) !== name) return []
    const kept = typeof text === 'string' ? keep(text) : ''
    return name === undefined && kept === '' ? [] : [{ ...call, function: { ...written, arguments: kept } }]
  })
}
