import type { Mutation } from '../../mutants.ts'
import type { Rule } from './witness.ts'

interface JournalMutation extends Mutation {
  /** The rule that it breaks first. */
  readonly breaks: Rule
  /** Where to begin, if it takes many schedules to notice. */
  readonly seed?: number
}

/** Breaks of the journal. */
export const mutations: readonly JournalMutation[] = [
  {
    name: 'rows are reported when the operating system has them',
    file: 'journal/journal.ts',
    find: 'into.writer.write(frame, into.end, isDurable, (',
    replace: 'into.writer.write(frame, into.end, false, (',
    breaks: 'nothing lost',
  },
  {
    name: 'rows are reported before they are written',
    file: 'journal/journal.ts',
    find: '        queuedRows++\n',
    replace: '        queuedRows++\n        resolve()\n',
    breaks: 'nothing lost',
  },
  {
    name: 'a segment does not say where the last one ended',
    file: 'journal/journal.ts',
    find: 'headText({ format: 1, previous })',
    replace: 'headText({ format: 1, previous: null })',
    breaks: 'nothing lost',
  },
  {
    name: 'recovery reads beyond where a failed segment ended',
    file: 'recovery.ts',
    find: 'named?.segment === segment ? named.end : end',
    replace: 'end',
    seed: 20_316,
    breaks: 'nothing overbilled',
  },
  {
    name: 'a failed first segment counts',
    file: 'recovery.ts',
    find: '(next !== undefined && (named?.segment ?? 0) < segment)',
    replace: '(named ? named.segment < segment : false)',
    breaks: 'nothing overbilled',
  },
  {
    name: 'a new segment carries no intents',
    file: 'journal/journal.ts',
    find: '[headText({ format: 1, previous }), ...carried.values()]',
    replace: '[headText({ format: 1, previous })]',
    breaks: 'nothing forgotten',
  },
  {
    name: 'a new segment does not carry intents whose rows come in a later frame',
    file: 'journal/journal.ts',
    find: 'for (let index = 0; index < count; index++) carried.delete(queue[index]!.requestId)',
    replace: 'for (const { requestId } of queue) carried.delete(requestId)',
    breaks: 'nothing forgotten',
  },
  {
    name: 'the late row is not written',
    file: 'journal/journal.ts',
    find: 'if (entry.row.late) entry.text = rowText(entry.row.late())',
    replace: '',
    breaks: 'nothing overbilled',
  },
  {
    name: 'rows of a failed write are forgotten',
    file: 'journal/journal.ts',
    find: '    failure = error\n',
    replace: '    failure = error\n    queue = queue.filter(({ row }) => !row)\n    queuedRows = 0\n',
    breaks: 'goes on',
  },
  {
    name: 'a failed segment is removed although a part of it is durable',
    file: 'journal/journal.ts',
    find: 'if (end > 0) previous = { segment: number, end }\n    else void',
    replace: 'if (end > 0) previous = { segment: number, end }\n    void',
    breaks: 'nothing lost',
  },
  {
    name: 'a segment is removed before it is applied',
    file: 'projector.ts',
    find: 'if (spans.length < 2 || !first || isApplying || first.from < first.to) return',
    replace: 'if (spans.length < 2 || !first || isApplying) return',
    breaks: 'nothing lost',
  },
  {
    name: 'the last segment is removed while it may still grow',
    file: 'projector.ts',
    find: '      if (spans.length === 1 || first.from < first.to) break\n',
    replace:
      '      if (spans.length === 1) done(segment)\n      if (spans.length === 1 || first.from < first.to) break\n',
    breaks: 'nothing forgotten',
  },
  {
    name: 'the position passes a row before it is set aside',
    file: 'projection.ts',
    find: 'await store.addRows(part, isWhole ? through : undefined)',
    replace: 'await store.addRows(part, through)',
    breaks: 'nothing forgotten',
  },
  {
    name: 'a row that is refused is not set aside',
    file: 'projection.ts',
    find: '      await store.setAside(row, message, now())\n',
    replace: '',
    breaks: 'nothing forgotten',
  },
  {
    name: 'recovery begins at the end of the segment that was being applied',
    file: 'recovery.ts',
    find: 'isAfter({ segment, offset: frame.end }, applied)',
    replace: 'segment > applied.segment',
    breaks: 'nothing forgotten',
  },
  {
    name: 'segments are removed before open requests are settled',
    file: 'recovery.ts',
    find: '  await addRows(\n    parts,\n    open.map(',
    replace:
      '  for (const it of segments) await parts.files.remove(it.segment)\n  segments = []\n  await addRows(\n    parts,\n    open.map(',
    breaks: 'nothing forgotten',
  },
  {
    name: 'open requests are not settled',
    file: 'recovery.ts',
    find: 'open.map((intent) => interruptedRow(intent, at))',
    replace: '[]',
    breaks: 'nothing forgotten',
  },
  {
    name: 'a settled request counts as open',
    file: 'recovery.ts',
    find: '      open.delete(record.row.requestId)\n',
    replace: '',
    breaks: 'nothing doubled',
  },
  {
    name: 'segment numbers begin again when no segment is left',
    file: 'recovery.ts',
    find: 'Math.max(0, ...numbers, applied?.segment ?? 0)',
    replace: 'Math.max(0, ...numbers)',
    seed: 20_296,
    breaks: 'nothing forgotten',
  },
  {
    name: 'a number is used again after a failed creation',
    file: 'journal/journal.ts',
    find: 'const writer = await files.create(number)',
    replace: 'const writer = await files.create(number).catch((error: unknown) => { nextNumber--; throw error })',
    breaks: 'goes on',
  },
  {
    name: 'a segment that is whole counts as damaged',
    file: 'recovery.ts',
    find: 'scanned.end < end',
    replace: 'scanned.end <= end',
    breaks: 'no false alarm',
  },
  {
    name: 'a torn frame counts',
    file: 'journal/records.ts',
    find: 'if (bytes.readUInt32LE(at + 8) !== checksum(text, segment, offset + at)) return undefined',
    replace: '',
    breaks: 'goes on',
  },
]
