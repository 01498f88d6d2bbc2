import { openSender, type Sender, type SenderEvents } from '../delivery/sender.ts'
import type { AlarmClock } from '../shared/clock.ts'
import type { SmtpServer } from '../shared/smtp-server.ts'
import type { AlertStore, ClaimedDelivery } from './alert-store.ts'
import { openDispatcher } from './dispatch.ts'
import type { AlertSettings, EmailEndpoint, WebhookEndpoint } from './endpoints.ts'
import { ReceiverGone, webhookDelivery, webhookSchedule } from './webhook.ts'

export interface DeliveringParts {
  readonly store: AlertStore
  readonly settings: AlertSettings
  /** undefined: there are no e-mails. */
  readonly smtp: SmtpServer | undefined
  readonly clock: AlarmClock
  events(endpoint: string): SenderEvents<ClaimedDelivery>
}

export interface Delivering {
  /** Sends what is due now. */
  sendDue(): Promise<void>
  close(): Promise<void>
}

/** Dispatches events and sends them. Each endpoint has a sender of its own, so that a slow one delays no other. */
export async function openDelivering({ store, settings, smtp, clock, events }: DeliveringParts): Promise<Delivering> {
  await using opened = new AsyncDisposableStack()
  const senders: Sender[] = []
  const mail = await openMail(settings, smtp)
  for (const endpoint of settings.endpoints) {
    const outbox = {
      claim: (now: number, leaseUntil: number) => store.claimDelivery(endpoint, now, leaseUntil),
      finish: store.finishDelivery,
    }
    const way =
      endpoint.kind === 'webhook'
        ? openWebhook(endpoint, store, clock, opened)
        : { deliver: mail!.to(endpoint), isFinal: mail!.isFinal, schedule: mail!.schedule }
    const sender = openSender<ClaimedDelivery>({ outbox, clock, ...way, events: events(endpoint.name) })
    senders.push(opened.adopt(sender, (it) => it.close()))
  }
  const sendDue = async (): Promise<void> => void (await Promise.all(senders.map((it) => it.sendDue())))
  const failed = (error: Error): void => events('').failed(error)
  const dispatcher = openDispatcher({
    store,
    endpoints: settings.endpoints,
    clock,
    dispatched: () => void sendDue().catch(failed),
    failed,
  })
  opened.adopt(dispatcher, (it) => it.close())
  const everything = opened.move()
  return {
    async sendDue() {
      await dispatcher.dispatchAll()
      await sendDue()
    },
    close: () => everything.disposeAsync(),
  }
}

function openWebhook(endpoint: WebhookEndpoint, store: AlertStore, clock: AlarmClock, opened: AsyncDisposableStack) {
  const webhook = opened.adopt(webhookDelivery({ ...endpoint, secret: endpoint.secret() }, clock), (it) => it.close())
  return {
    async deliver(delivery: ClaimedDelivery): Promise<void> {
      try {
        await webhook.deliver(delivery)
      } catch (error) {
        if (error instanceof ReceiverGone) await store.disableEndpoint(endpoint, clock.now())
        throw error
      }
    },
    // The endpoint is disabled, and its deliveries wait until it is enabled again.
    isFinal: () => false,
    schedule: webhookSchedule,
  }
}

/** The modules are loaded only where e-mails are sent, because they take memory. */
async function openMail({ endpoints }: AlertSettings, smtp: SmtpServer | undefined) {
  if (!smtp || !endpoints.some(({ kind }) => kind === 'email')) return undefined
  const { emailSchedule, isFinalRefusal, smtpTransport } = await import('../delivery/smtp-transport.ts')
  const { eventEmail } = await import('./email.ts')
  const transport = smtpTransport(smtp)
  return {
    to: ({ recipient }: EmailEndpoint) => eventEmail(transport, smtp, recipient),
    isFinal: isFinalRefusal,
    schedule: emailSchedule,
  }
}
