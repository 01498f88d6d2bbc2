import type { Workspace } from '../../workspaces/workspace.ts'
import type { Invoicing } from './invoices.ts'

/** A summary of a month's documents, for the audit log. */
export async function monthSummary(
  invoicing: Pick<Invoicing, 'list'>,
  workspace: Workspace,
  period: string,
): Promise<object> {
  const documents = await invoicing.list(workspace)
  const ofMonth = documents.filter((document) => document.period === period)
  return { documents: ofMonth.map(({ number, total }) => ({ number, total })) }
}
