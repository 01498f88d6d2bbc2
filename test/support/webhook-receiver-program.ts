import { writeSync } from 'node:fs'
import { webhookReceiver } from './webhook-receiver.ts'

/**
 * A receiver of webhooks as a program, to be killed. Arguments: its port, and the status that it answers with; without one it
 * never answers. It writes a line when it is ready, and one for each event before it answers: the id, and the key of the event.
 */
const [port, status] = process.argv.slice(2)
await webhookReceiver({
  port: Number(port),
  answer: status === undefined ? undefined : { status: Number(status) },
  onReceived: ({ id, event }) => void writeSync(1, `${id} ${String(event.data['key_id'])}\n`),
})
writeSync(1, 'ready\n')
