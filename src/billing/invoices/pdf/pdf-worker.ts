import { parentPort, workerData } from 'node:worker_threads'
import type { PrintableInvoice } from '../invoice-wording.ts'
import { invoicePdf } from './invoice-pdf.ts'

/** Renders one PDF in a thread of its own. */
const { invoice, fonts } = workerData as { readonly invoice: PrintableInvoice; readonly fonts: readonly string[] }
try {
  parentPort?.postMessage({ pdf: await invoicePdf(invoice, fonts) })
} catch (error) {
  parentPort?.postMessage({ message: (error as Error).message })
}
