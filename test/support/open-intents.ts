import { journalRecords } from './journal-disk.ts'

/** How many requests are in the journal of a data directory without a row. */
export function openIntents(dataDir: string): number {
  const open = new Set<string>()
  for (const record of journalRecords(dataDir)) {
    if (record.kind === 'intent') open.add(record.intent.requestId)
    if (record.kind === 'row') open.delete(record.row.requestId)
  }
  return open.size
}
