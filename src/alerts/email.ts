import type { SmtpTransport } from '../delivery/smtp-transport.ts'
import type { SmtpServer } from '../shared/smtp-server.ts'
import { eventTable, type EventType } from './event-table.ts'

/** Sends an event to a mailbox. The id of the message is that of the event. */
export function eventEmail(transport: SmtpTransport, { from, replyTo }: SmtpServer, recipient: string) {
  return async ({ eventId, body }: { readonly eventId: string; readonly body: string }): Promise<void> => {
    await transport.sendMail({
      from: { name: 'Weir', address: from },
      to: { name: '', address: recipient },
      ...(replyTo === undefined ? {} : { replyTo }),
      messageId: `<${eventId}@${from.slice(from.lastIndexOf('@') + 1)}>`,
      ...messageOf(body),
    })
  }
}

/** The same bytes that a webhook gets, for a person. */
export function messageOf(body: string): { readonly subject: string; readonly text: string } {
  const { type, timestamp, data } = JSON.parse(body) as {
    readonly type: EventType
    readonly timestamp: string
    readonly data: Readonly<Record<string, unknown>>
  }
  const fields = Object.entries(data).filter(([, value]) => value !== null)
  const [first] = fields
  return {
    subject: `Weir: ${type}${first ? ` (${textOf(first[1])})` : ''}`,
    text: `${eventTable[type].summary}\n\n${[...fields, ['at', timestamp] as const]
      .map(([name, value]) => `${name.replaceAll('_', ' ')}: ${textOf(value)}`)
      .join('\n')}\n`,
  }
}

const textOf = (value: unknown): string => (Array.isArray(value) ? value.join(', ') : String(value))
