import { isDeepStrictEqual } from 'node:util'
import { AnswerReader } from '../../../src/engines/http-client/answer-reader.ts'
import type { Outcome } from './three-clients.ts'

/** One client made something else of an answer than ours. */
export interface Difference {
  readonly answer: string
  readonly ours: Outcome
  readonly theirs: Outcome
  readonly client: 'undici' | 'node'
}

export interface Explanation {
  /** As in the README of the client. */
  readonly why: string
  explains(difference: Difference): boolean
}

// oxlint-disable-next-line no-control-regex
const CONTROL_IN_EXTENSION = /;[^\r\n]*[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/
// oxlint-disable-next-line no-control-regex
const CONTROL_IN_STATUS_LINE = /^HTTP[^\r\n]*([\0-\x08\x0b\x0c\x0e-\x1f\x7f]|\r[^\n])/m

const reason = (outcome: Outcome): string => (outcome.kind === 'failed' ? outcome.reason : '')

/** Without the spaces and tabs behind its values. */
function withoutBlanks(outcome: Outcome): Outcome {
  if (outcome.kind === 'failed') return outcome
  const headers = Object.entries(outcome.headers).map(([name, values]) => [
    name,
    values.map((value) => value.replace(/(?<![\t ])[\t ]+$/, '')),
  ])
  return { ...outcome, headers: Object.fromEntries(headers) as Record<string, readonly string[]> }
}

/** Why our client differs from undici and from node's own. Both read answers with llhttp. */
export const explanations: readonly Explanation[] = [
  {
    why: 'Any transfer encoding but a single `chunked` is refused. The others hand on bytes that are still encoded.',
    explains: ({ ours, theirs }) => reason(ours).includes('in the transfer encoding') && theirs.kind === 'answered',
  },
  {
    why: 'Bytes behind the end of an answer end the connection, and not the request. Node fails the request.',
    explains: ({ client, answer, ours, theirs }) =>
      client === 'node' && ours.kind === 'answered' && theirs.kind === 'failed' && hasMoreBehind(answer),
  },
  {
    why: 'Trailers are checked and discarded. The others refuse a Content-Length among them.',
    explains: ({ answer, ours, theirs }) =>
      ours.kind === 'answered' &&
      reason(theirs).includes('Content-Length') &&
      /\r\n0*\r\n[^]*content-length:/i.test(answer),
  },
  {
    why: 'Extensions of chunks are skipped, unless they have control characters. The others check their syntax.',
    explains: ({ answer, ours, theirs }) =>
      ours.kind === 'answered' && reason(theirs).includes('chunk extensions') && !CONTROL_IN_EXTENSION.test(answer),
  },
  {
    why: 'Spaces and tabs around a value do not belong to it. undici keeps those behind it, and neither knows every length or `chunked` with them.',
    explains: ({ client, answer, ours, theirs }) =>
      (client === 'undici' && isDeepStrictEqual(withoutBlanks(ours), withoutBlanks(theirs))) ||
      /^(content-length|transfer-encoding):[^\r]*(\t|[\t ]\r)/im.test(answer),
  },
  {
    why: '100 Continue is skipped like every informational answer. undici refuses it.',
    explains: ({ client, answer, theirs }) =>
      client === 'undici' && reason(theirs) === 'bad response' && answer.includes('HTTP/1.1 100'),
  },
  {
    why: '101 is refused. Node takes it for an answer if it names no protocol.',
    explains: ({ client, ours, theirs }) =>
      client === 'node' && ours.kind === 'failed' && theirs.kind === 'answered' && theirs.status === 101,
  },
  {
    why: 'Only HTTP/1.0 and HTTP/1.1 with a status from 100 to 599 are answers, from the first byte on. The others skip blank lines, and take other versions, ICE and other statuses.',
    explains: ({ answer, ours, theirs }) =>
      reason(ours).includes('did not answer in HTTP/1.1') &&
      theirs.kind === 'answered' &&
      !/^(HTTP\/1\.[01] 1\d\d[^\r\n]*\r\n([^\r\n]+\r\n)*\r\n)*HTTP\/1\.[01] [2-5]\d\d[ \r]/.test(answer),
  },
  {
    why: 'Control characters and half a line end are refused in the status line, too.',
    explains: ({ answer, ours }) =>
      /not allowed|did not answer/.test(reason(ours)) && CONTROL_IN_STATUS_LINE.test(answer),
  },
  {
    why: 'A head may have 64 KiB, its status line 4 KiB, a line of a chunk 4 KiB, and trailers 64 KiB. The others have 16 KiB for the head and for trailers.',
    explains: ({ answer, ours, theirs }) =>
      (answer.length > 16_000 && /overflow/i.test(reason(theirs))) ||
      (/no end|did not answer/.test(reason(ours)) && /^[^\n]{4096}/m.test(answer)),
  },
  {
    why: 'All headers are handed on. Node drops those beyond the thousandth.',
    explains: ({ client, answer, theirs }) =>
      client === 'node' && theirs.kind === 'answered' && /^(?:[^\r\n]+\r\n){1000}/.test(answer),
  },
]

/** Whether there are bytes behind the end of the first answer. */
function hasMoreBehind(answer: string): boolean {
  let isOver = false
  const reader = new AnswerReader({ answerHead() {}, answerBody() {}, answerEnd: () => (isOver = true) })
  reader.expect()
  const bytes = Buffer.from(answer, 'latin1')
  for (const [index, byte] of bytes.entries()) {
    reader.read(Buffer.from([byte]), 1)
    if (isOver) return index + 1 < bytes.length
  }
  return false
}
