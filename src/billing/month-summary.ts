import type { Workspace } from '../ports/accounts.ts'
import type { Invoicing } from './invoices.ts'

/** The documents of a month in short, as the audit log shows them. */
export async function monthSummary(
  invoicing: Pick<Invoicing, 'list'>,
  workspace: Workspace,
  period: string,
): Promise<object> {
  const documents = await invoicing.list(workspace)
  const ofMonth = documents.filter((document) => document.period === period)
  return { documents: ofMonth.map(({ number, total }) => ({ number, total })) }
}
