import { refusalView, usageView } from '../views.ts'
import type { LedgerRow } from '../../../ledger/rows.ts'
import type { Refusal } from '../../refused-requests/refusals.ts'
import { CommandFailed, withStore, type Flags } from '../../../cli/command.ts'
import { audText, usageText } from '../../../cli/terminal/amounts.ts'
import { renderFields } from '../../../cli/terminal/table.ts'
import { secondText, ZONE } from '../../../cli/terminal/times.ts'
import type { View } from '../../../cli/terminal/view.ts'

/** `weir usage REQUEST_ID`: how one request ended, whether it has a ledger row or was refused before. */
export async function showRequest(flags: Flags, requestId: string): Promise<void> {
  flags.refuseMore(1)
  await withStore(flags, { changes: false }, async ({ accounts, store }) => {
    const nameOf = (id: string): string | null => accounts.workspaces().find((it) => it.id === id)?.name ?? null
    const row = await store.usageRow(requestId)
    if (row) {
      const data = { object: 'request', workspace: nameOf(row.workspaceId), ...usageView(row) }
      return flags.print(data, (view) => rowText(row, nameOf(row.workspaceId), view))
    }
    const refusal = await store.refusedRequest(requestId)
    if (!refusal) {
      throw new CommandFailed(
        `there is no request ${requestId}; of refused requests, only the newest of each workspace and error code are kept`,
      )
    }
    const data = { object: 'refused_request', ...refusalView(refusal, nameOf) }
    flags.print(data, (view) => refusalText(refusal, nameOf(refusal.workspaceId), view))
  })
}

function rowText(row: LedgerRow, workspace: string | null, view: View): string {
  return renderFields(
    [
      ['request', row.requestId],
      ['workspace', workspace],
      ['key', row.keyId],
      ['model', row.model],
      ['endpoint', row.endpoint],
      ['tier', row.tier],
      ['settled', `${secondText(row.settledAt)} (${ZONE})`],
      ['outcome', row.outcome],
      ['status', textOf(row.httpStatus)],
      ['error', row.errorCode],
      ['usage', usageText(row)],
      ['cost', `${audText(row.amount)} excluding GST`],
      ['waited', `${row.queueWaitMs} ms`],
      ['took', `${row.durationMs} ms`],
      ['reason', row.correction?.reason ?? row.credit?.reason ?? null],
    ],
    view,
  )
}

export function refusalText(it: Refusal, workspace: string | null, view: View): string {
  return renderFields(
    [
      ['request', it.requestId],
      ['workspace', workspace],
      ['key', it.keyId],
      ['model', it.model],
      ['endpoint', it.endpoint],
      ['refused', `${secondText(it.at)} (${ZONE})`],
      ['status', textOf(it.httpStatus)],
      ['error', it.code],
      ['parameter', it.param],
      ['reason', it.reason],
    ],
    view,
  )
}

const textOf = (value: number | null): string | null => (value === null ? null : String(value))
