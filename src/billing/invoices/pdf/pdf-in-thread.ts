import { Worker } from 'node:worker_threads'
import { ApiError } from '../../../shared/errors.ts'
import { takeTurns, type TurnClient } from '../../../shared/turns.ts'
import type { PrintableInvoice } from '../invoice-wording.ts'

const turns = takeTurns({
  atOnce: 1,
  maxWaiting: 256,
  maxWaitingOfOwner: 8,
  full: 'Too many PDFs are waiting to be rendered. Try again shortly.',
  ownerFull: 'Too many PDFs that you asked for are waiting to be rendered. Try again when some of them have come.',
})

/**
 * Renders a PDF in a thread of its own, because shaping the text of a long invoice takes a second, which would block
 * every other request. One at a time, so that PDFs do not occupy every core.
 */
export function pdfInThread(client: TurnClient, invoice: PrintableInvoice, fonts: readonly string[]): Promise<Buffer> {
  return turns.run(client, () => render(invoice, fonts))
}

function render(invoice: PrintableInvoice, fonts: readonly string[]): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./pdf-worker.ts', import.meta.url), { workerData: { invoice, fonts } })
    worker.once('message', (answer: { readonly pdf: Uint8Array } | { readonly message: string }) => {
      if ('pdf' in answer) resolve(Buffer.from(answer.pdf))
      else reject(new ApiError('invalid_value', answer.message, { param: 'format' }))
    })
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('the thread that renders PDFs ended')))
  })
}
