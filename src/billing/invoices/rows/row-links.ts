import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { ApiError } from '../../../shared/errors.ts'
import type { InvoiceDocument } from '../invoice-document.ts'
import { sydneyDate } from '../../../shared/money/sydney-time.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { LinkSecretStore } from '../invoice-store.ts'
import type { PrintableInvoice } from '../invoice-wording.ts'

/**
 * Links to the rows behind the lines of an invoice, for anyone with the invoice. A link is for one line of one
 * document, is valid until a day in Sydney, and carries a signature instead of a key. The secret is in the store, so
 * every process that prints invoices signs alike, and replacing it revokes all links at once.
 */
export interface RowLinks {
  /** The document with a link for each line. Without a public URL, or for a preview, there are none. */
  linked<Document extends InvoiceDocument>(document: Document): Promise<Omit<Document, 'lines'> & PrintableInvoice>
  /** Throws unless the link is one of ours and still valid. */
  requireValid(link: RowLink): Promise<void>
  /** Revokes all links. */
  revoke(): Promise<void>
}

export interface RowLink {
  readonly number: string
  /** From 1, as text: it is part of what was signed. */
  readonly line: string
  /** The last day on which it works, such as 2027-02-13. */
  readonly until: string
  readonly signature: string
}

interface LinkOptions {
  /** The base URL at which buyers reach the API. */
  readonly publicUrl: string | undefined
  readonly days: number
}

const DAY_MS = 86_400_000

export function openRowLinks(store: LinkSecretStore, clock: Clock, { publicUrl, days }: LinkOptions): RowLinks {
  const newSecret = (): string => randomBytes(32).toString('hex')

  async function secret(): Promise<string> {
    const kept = await store.linkSecret()
    if (kept !== undefined) return kept
    await store.addLinkSecret(newSecret())
    return secret()
  }

  return {
    async linked(document) {
      const { number, lines } = withRows(document)
      if (number === null) return document
      if (publicUrl === undefined) return { ...document, lines }
      const until = sydneyDate(clock.now() + days * DAY_MS)
      const key = await secret()
      const linkOf = (line: string): string => {
        const query = new URLSearchParams({ until, signature: sign(key, { number, line, until }) })
        return `${publicUrl}${rowsPath(number, line)}?${query.toString()}`
      }
      return {
        ...document,
        lines: lines.map((line, index) => ({ ...line, link: linkOf(String(index + 1)) })),
        links_until: until,
      }
    },
    async requireValid(link) {
      const kept = await store.linkSecret()
      if (kept === undefined || !isSame(link.signature, sign(kept, link))) {
        throw new ApiError(
          'not_found',
          'This link is incomplete, or it has been revoked. Ask for a new copy of the invoice.',
        )
      }
      if (link.until < sydneyDate(clock.now())) {
        throw new ApiError('not_found', 'This link has expired. Ask for a new copy of the invoice.')
      }
    },
    revoke: () => store.replaceLinkSecret(newSecret()),
  }
}

/** An issued document with a link from each line to its rows. */
export function withRows(document: InvoiceDocument): InvoiceDocument {
  const { number, lines } = document
  if (number === null) return document
  const rowsOf = (index: number): string => `/api/v1/invoices/${number}/lines/${index + 1}?format=csv`
  return { ...document, lines: lines.map((line, index) => ({ ...line, rows: rowsOf(index) })) }
}

function rowsPath(number: string, line: string): string {
  return `/api/v1/invoices/${number}/rows/${line}`
}

function sign(secret: string, { number, line, until }: Omit<RowLink, 'signature'>): string {
  return createHmac('sha256', Buffer.from(secret, 'hex'))
    .update(`invoice rows\n${number}\n${line}\n${until}`)
    .digest('base64url')
}

/** Compares in constant time. */
function isSame(given: string, right: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(right)]
  return one.length === other.length && timingSafeEqual(one, other)
}
