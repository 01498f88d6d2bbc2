import { createHmac } from 'node:crypto'
import { isIP } from 'node:net'
import { Agent } from 'undici'
import { isPrivateAddress, publicLookup } from '../delivery/public-address.ts'
import type { Clock } from '../shared/clock.ts'
import type { ClaimedDelivery } from './alert-store.ts'

/** Sends events as https://www.standardwebhooks.com describes. */

export interface Webhook {
  readonly name: string
  readonly url: string
  /** Whether the receiver may be at an address that is not on the public internet. */
  readonly allowsPrivate: boolean
  /** The bytes that sign. */
  readonly secret: Buffer
}

const SECONDS = 1000
const MINUTES = 60 * SECONDS
const HOURS = 60 * MINUTES

/** As Standard Webhooks suggests: ten attempts over three days. */
export const webhookSchedule = {
  pausesMs: [
    5 * SECONDS,
    5 * MINUTES,
    30 * MINUTES,
    2 * HOURS,
    5 * HOURS,
    10 * HOURS,
    14 * HOURS,
    20 * HOURS,
    24 * HOURS,
  ],
  leaseMs: 30 * SECONDS,
}
const TIMEOUT_MS = 10 * SECONDS

/** The receiver has answered that it does not want any more events. */
export class ReceiverGone extends Error {}

export interface WebhookDelivery {
  deliver(delivery: Pick<ClaimedDelivery, 'eventId' | 'body'>): Promise<void>
  close(): Promise<void>
}

export function webhookDelivery({ url, allowsPrivate, secret }: Webhook, clock: Clock): WebhookDelivery {
  // Each attempt has a connection of its own, so that the address is checked each time.
  const agent = new Agent({ pipelining: 0, connect: allowsPrivate ? {} : { lookup: publicLookup } })
  const { origin, pathname, search, hostname } = new URL(url)
  // The lookup is skipped for an IP address.
  const address = hostname.replaceAll(/[[\]]/g, '')
  const isRefused = !allowsPrivate && isIP(address) !== 0 && isPrivateAddress(address)
  return {
    async deliver({ eventId, body }) {
      if (isRefused) throw new Error(`${address} is a private address, and allow_private is not set`)
      const seconds = Math.floor(clock.now() / SECONDS)
      const { statusCode, body: answer } = await agent.request({
        origin,
        path: pathname + search,
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'user-agent': 'weir-webhooks',
          'webhook-id': eventId,
          'webhook-timestamp': String(seconds),
          'webhook-signature': signature(secret, eventId, seconds, body),
        },
        body,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      // Only the status counts. The answer may never end.
      answer.on('error', () => {})
      answer.destroy()
      if (statusCode === 410) throw new ReceiverGone('HTTP 410: the receiver is gone, so the endpoint is disabled')
      if (statusCode < 200 || statusCode > 299) throw new Error(`HTTP ${statusCode}`)
    },
    close: () => agent.destroy(),
  }
}

function signature(secret: Buffer, id: string, seconds: number, body: string): string {
  return `v1,${createHmac('sha256', secret).update(`${id}.${seconds}.${body}`).digest('base64')}`
}
