import { ApiError } from '../../core/errors.ts'
import type { LiveFeed, Sample } from '../../ports/live.ts'
import type { Exchange } from '../exchange.ts'

/** Sends samples to a browser as they are taken. A browser that lost the connection gets what it missed. */

const STREAMS_MAX = 1000
const STREAMS_OF_OWNER_MAX = 50

/** Counts the open streams, so that nobody can open too many. */
export interface LiveStreams {
  send(exchange: Exchange, stream: LiveStream): Promise<void>
}

interface LiveStream {
  /** Whose stream it is. */
  readonly owner: string
  /** Asked before every sample: a stream ends with the session. */
  isAllowed(): Promise<boolean>
  /** What the browser gets of a sample. */
  view(sample: Sample): object
}

export function liveStreams(feed: LiveFeed): LiveStreams {
  const open = new Map<string, number>()
  let total = 0

  return {
    async send(exchange, { owner, isAllowed, view }) {
      const own = open.get(owner) ?? 0
      if (own >= STREAMS_OF_OWNER_MAX || total >= STREAMS_MAX) {
        throw new ApiError('service_unavailable', 'Too many pages follow the service live. Close some of them.')
      }
      open.set(owner, own + 1)
      total++
      try {
        await follow(exchange, feed, isAllowed, view)
      } finally {
        total--
        const left = (open.get(owner) ?? 1) - 1
        if (left === 0) open.delete(owner)
        else open.set(owner, left)
      }
    },
  }
}

function follow(
  exchange: Exchange,
  feed: LiveFeed,
  isAllowed: () => Promise<boolean>,
  view: (sample: Sample) => object,
): Promise<void> {
  return new Promise((resolve) => {
    let isBlocked = false
    let isEnded = false
    const cleanUp: (() => void)[] = []

    function end(): void {
      isEnded = true
      for (const undo of cleanUp) undo()
      exchange.end('')
      resolve()
    }

    /** A session whose key cannot be looked up is not over: its next sample asks again. */
    async function sendIfAllowed(sample: Sample): Promise<void> {
      const allowed = await isAllowed().catch(() => undefined)
      if (allowed) send(sample)
      else if (allowed === false && !isEnded) end()
    }

    function send(sample: Sample): void {
      // A browser that is behind gets the next sample instead.
      if (isEnded || isBlocked) return
      const flows = exchange.write(`id: ${sample.id}\nevent: sample\ndata: ${asciiJson(view(sample))}\n\n`)
      if (flows) return
      isBlocked = true
      exchange.onDrain(() => (isBlocked = false))
    }

    const lastSeen = exchange.request.headers['last-event-id']
    const missed = feed.since(typeof lastSeen === 'string' ? lastSeen : undefined)
    exchange.openStream({})
    exchange.write('retry: 2000\n\n')
    for (const sample of missed) send(sample)
    cleanUp.push(feed.subscribe((sample) => void sendIfAllowed(sample), end))
    cleanUp.push(exchange.onGone(end))
    // It may have ended meanwhile.
    if (isEnded) for (const undo of cleanUp) undo()
  })
}

/** The bytes of a stream are written one per character. */
function asciiJson(value: object): string {
  return JSON.stringify(value).replaceAll(
    /[\u0080-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
