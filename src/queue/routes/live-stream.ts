import { ApiError } from '../../shared/errors.ts'
import type { LiveFeed, Sample } from '../live.ts'
import type { Exchange } from '../../server/exchange.ts'

/** Streams samples to a browser as they are taken. A browser that reconnects gets the samples that it missed. */

const STREAMS_MAX = 1000
const STREAMS_OF_OWNER_MAX = 50

/** Limits the number of open streams, in total and for each owner. */
export interface LiveStreams {
  send(exchange: Exchange, stream: LiveStream): Promise<void>
}

interface LiveStream {
  /** The workspace or operator that the stream counts against. */
  readonly owner: string
  /** Checked before every sample, so that the stream ends when the session does. */
  isAllowed(): Promise<boolean>
  /** The part of a sample that is sent to the browser. */
  view(sample: Sample): object
}

export function liveStreams(feed: LiveFeed): LiveStreams {
  const open = new Map<string, number>()
  let total = 0

  return {
    async send(exchange, { owner, isAllowed, view }) {
      const own = open.get(owner) ?? 0
      if (own >= STREAMS_OF_OWNER_MAX || total >= STREAMS_MAX) {
        throw new ApiError(
          'service_unavailable',
          'Too many live streams are open. Close some of the pages that show live figures.',
        )
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

    /** If the session cannot be looked up, the stream stays open, and the next sample checks again. */
    async function sendIfAllowed(sample: Sample): Promise<void> {
      const allowed = await isAllowed().catch(() => undefined)
      if (allowed) send(sample)
      else if (allowed === false && !isEnded) end()
    }

    function send(sample: Sample): void {
      // A slow browser skips this sample and gets a later one.
      if (isEnded || isBlocked) return
      const flows = exchange.write(`id: ${sample.id}\nevent: sample\ndata: ${asciiJson(view(sample))}\n\n`)
      if (flows) return
      isBlocked = true
      exchange.onDrain(() => (isBlocked = false))
    }

    const missed = feed.since(exchange.request.headers['last-event-id'])
    exchange.openStream({})
    exchange.write('retry: 2000\n\n')
    for (const sample of missed) send(sample)
    cleanUp.push(feed.subscribe((sample) => void sendIfAllowed(sample), end))
    cleanUp.push(exchange.onGone(end))
  })
}

/** Escapes non-ASCII characters, because a stream is written with one byte per character. */
function asciiJson(value: object): string {
  return JSON.stringify(value).replaceAll(
    /[\u0080-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
