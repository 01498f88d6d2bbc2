import { Type } from 'typebox'
import type { Accounts } from '../../../workspaces/accounts.ts'
import type { Invoicing } from '../invoices.ts'
import { draftsState, issueDrafts } from '../month-drafts.ts'
import { workspaceName } from '../../../server/common-schema.ts'
import { operatorRoute, type OperatorRoute } from '../../../server/operator-route.ts'
import { jsonResponse } from '../../../server/route.ts'
import { draftsSchema, issuedDraftsSchema } from './drafts-schema.ts'
import { previewIdExample } from './invoice-schema.ts'
import { monthIn, periodSchema } from './period.ts'

/** The drafts of a month for all workspaces. */

interface DraftsParts {
  readonly accounts: Accounts
  readonly invoicing: Invoicing
}

const issueDraftsSchema = Type.Object({
  period: periodSchema,
  drafts: Type.Array(
    Type.Object(
      { workspace: workspaceName, preview_id: Type.String({ minLength: 1, maxLength: 100 }) },
      { additionalProperties: false },
    ),
    { minItems: 1, maxItems: 100 },
  ),
})

export function draftRoutes({ accounts, invoicing }: DraftsParts): readonly OperatorRoute[] {
  return [
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/invoices/drafts',
      id: 'listDrafts',
      roles: ['finance', 'viewer'],
      summary: 'List the drafts of a month',
      description:
        'What each workspace would be invoiced for a month, if it has no invoice for it yet. In pages, by the names of the workspaces; a page may have fewer drafts than its limit, because months that come to nothing are left out.',
      query: Type.Object({
        period: periodSchema,
        after: Type.Optional(Type.String({ maxLength: 200, description: "The 'next' of the previous page." })),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: '1 to 100, by default 50.' })),
      }),
      response: jsonResponse(draftsSchema),
      errors: [],
      async answer({ exchange, query: { period, after, limit = 50 } }) {
        const { drafts: data, next } = await invoicing.drafts({ month: monthIn(period), after, limit })
        exchange.sendJson(JSON.stringify({ object: 'list', data, next }))
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/invoices/drafts/issue',
      id: 'issueDrafts',
      roles: ['finance'],
      summary: 'Issue drafts of a month',
      description:
        'Issues the chosen drafts, each exactly as it was listed. A draft that has changed since, or cannot be issued, is refused for its workspace alone; the others are issued. The answer has the result for each, in the same order.',
      body: issueDraftsSchema,
      example: { period: '2026-11', drafts: [{ workspace: 'acme', preview_id: previewIdExample }] },
      response: jsonResponse(issuedDraftsSchema),
      errors: [],
      state: ({ body: { period, drafts } }) =>
        draftsState((name) => invoicing.list(accounts.workspace(name)), period, drafts),
      async answer({ exchange, body: { period, drafts } }) {
        const month = monthIn(period)
        const issue = (workspace: string, previewId: string) =>
          invoicing.issue(accounts.workspace(workspace), month, previewId)
        const data = await issueDrafts(issue, drafts)
        exchange.sendJson(JSON.stringify({ object: 'list', data }))
      },
    }),
  ]
}
