import { Type } from 'typebox'
import { MAX_EMAIL_ADDRESS } from '../../shared/email-address.ts'
import type { Accounts } from '../accounts.ts'
import { PER_MINUTE_MAX } from '../keys/key-limits.ts'
import { workspaceView } from '../views.ts'
import type { WorkspaceSessions } from '../sessions/workspace-sessions.ts'
import { workspaceList } from '../workspace-list.ts'
import { changeWorkspace } from '../workspace-change.ts'
import { requireSomething } from './require-something.ts'
import { EXAMPLE_TIME, exampleOf, nullable, pageSchema } from '../../server/common-schema.ts'
import { jsonResponse } from '../../server/route.ts'
import { operatorRoute, type OperatorRoute } from '../../server/operator-route.ts'

export interface WorkspacesParts {
  readonly accounts: Accounts
  readonly sessions: Pick<WorkspaceSessions, 'issueLink'>
  /** The limit of workspaces that have none of their own. It may change at any time. */
  readonly limits: { readonly requestsPerMinute: number }
}

const workspaceSchema = Type.Object({
  id: Type.String({ example: 'ws_4b8e6d10' }),
  name: Type.String({ example: 'acme' }),
  requests_per_minute: Type.Integer({ example: 600 }),
  tokens_per_minute: nullable(Type.Integer({ example: 100_000 }), 'A soft limit. null: there is none.'),
  spend_limit: nullable(Type.String({ example: '250.00' }), 'AUD per month in Sydney, excluding GST.'),
  spend_limit_kind: nullable(Type.Enum(['soft', 'hard'], { example: 'hard' })),
  buyer: Type.Object(
    {
      name: nullable(Type.String({ example: 'Acme Pty Ltd' })),
      abn: nullable(Type.String({ example: '51824753556' })),
      address: nullable(Type.String({ example: '1 Lock Street, Sydney' })),
      purchase_order: nullable(Type.String()),
      email: nullable(Type.String()),
    },
    { description: 'Who its invoices are addressed to.' },
  ),
  created: Type.String({ example: EXAMPLE_TIME }),
})

const creationSchema = Type.Object({
  name: Type.String({
    minLength: 1,
    maxLength: 64,
    description: '1 to 64 letters, digits, spaces, ".", "_" and "-", starting with a letter or digit.',
  }),
})

const text = (description: string) =>
  Type.Optional(nullable(Type.String({ minLength: 1, maxLength: 1000 }), description))

const changeSchema = Type.Object(
  {
    requests_per_minute: Type.Optional(
      nullable(
        Type.Integer({ minimum: 1, maximum: PER_MINUTE_MAX }),
        '1 to 100000000. null returns the workspace to the default of the service.',
      ),
    ),
    tokens_per_minute: Type.Optional(
      nullable(
        Type.Integer({ minimum: 1, maximum: PER_MINUTE_MAX }),
        'Input and output tokens of all its keys together, 1 to 100000000. A soft limit: requests are refused once it is reached. null removes the limit.',
      ),
    ),
    spend_limit: text('AUD per month in Sydney, excluding GST, such as "250.00". null removes the limit.'),
    spend_limit_kind: Type.Optional(
      Type.Enum(['soft', 'hard'], {
        description:
          'A hard limit refuses requests that would exceed it; a soft limit only reports it. A new limit is hard; a changed one keeps its kind.',
      }),
    ),
    buyer: Type.Optional(
      Type.Object(
        {
          name: text('null: the name of the workspace.'),
          abn: text('An Australian Business Number, or null.'),
          address: text('A postal address, or null.'),
          purchase_order: text("The buyer's own number for the order, printed on its invoices, or null."),
          email: Type.Optional(
            nullable(
              Type.String({ minLength: 1, maxLength: MAX_EMAIL_ADDRESS }),
              'One e-mail address, where its invoices are sent if the service sends e-mail, or null.',
            ),
          ),
        },
        { additionalProperties: false, description: 'Who its invoices are addressed to.' },
      ),
    ),
  },
  { additionalProperties: false },
)

export function workspaceRoutes({ accounts, sessions, limits }: WorkspacesParts): readonly OperatorRoute[] {
  const workspaceJson = (name: string): string =>
    JSON.stringify(workspaceView(accounts.workspace(name), limits.requestsPerMinute))

  return [
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/workspaces',
      id: 'listWorkspaces',
      roles: ['finance', 'viewer'],
      summary: 'List workspaces',
      description: 'Workspaces with their limits and buyers, the newest first, in pages.',
      query: Type.Object({
        search: Type.Optional(Type.String({ maxLength: 64, description: 'Only those with this in their name.' })),
        before: Type.Optional(Type.String({ maxLength: 100, description: "The 'next' of the previous page." })),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: '1 to 1000, by default 100.' })),
      }),
      response: jsonResponse(pageSchema(workspaceSchema)),
      errors: [],
      async answer({ exchange, query: { search, before, limit = 100 } }) {
        const { workspaces, next } = workspaceList(accounts, { search, before, limit })
        const data = workspaces.map((it) => workspaceView(it, limits.requestsPerMinute))
        exchange.sendJson(JSON.stringify({ object: 'list', data, next }))
      },
    }),
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/workspaces/{workspace}',
      id: 'getWorkspace',
      roles: ['finance', 'viewer'],
      summary: 'One workspace',
      description: 'A workspace with its limits and its buyer.',
      parameters: { workspace: { description: 'The name or id of a workspace.', example: 'acme' } },
      response: jsonResponse(workspaceSchema),
      errors: ['not_found'],
      answer: async ({ exchange, parameters }) => exchange.sendJson(workspaceJson(parameters.workspace)),
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/workspaces',
      id: 'createWorkspace',
      summary: 'Create a workspace',
      description: 'Keys, limits, prices and invoices belong to a workspace.',
      body: creationSchema,
      example: { name: 'acme' },
      response: jsonResponse(
        workspaceSchema,
        {
          ...(exampleOf(workspaceSchema) as object),
          tokens_per_minute: null,
          spend_limit: null,
          spend_limit_kind: null,
          buyer: { name: null, abn: null, address: null, purchase_order: null, email: null },
        },
        201,
      ),
      errors: ['conflict'],
      state: async ({ body }) => workspaceView(accounts.workspace(body.name), limits.requestsPerMinute),
      async answer({ exchange, body }) {
        await accounts.createWorkspace(body.name)
        exchange.sendJson(workspaceJson(body.name), 201)
      },
    }),
    operatorRoute({
      method: 'PATCH',
      path: '/admin/v1/workspaces/{workspace}',
      id: 'changeWorkspace',
      summary: 'Change a workspace',
      description: 'Changes limits and the buyer. Fields that are left out stay as they are.',
      parameters: { workspace: { description: 'The name or id of a workspace.', example: 'acme' } },
      body: changeSchema,
      example: { spend_limit: '250.00', buyer: { name: 'Acme Pty Ltd' } },
      response: jsonResponse(workspaceSchema),
      errors: ['not_found'],
      state: async ({ parameters }) =>
        workspaceView(accounts.workspace(parameters.workspace), limits.requestsPerMinute),
      async answer({ exchange, parameters, body }) {
        requireSomething(body, 'requests_per_minute', 'requests_per_minute')
        if (body.buyer) requireSomething(body.buyer, 'buyer', 'name')
        await changeWorkspace(accounts, parameters.workspace, body)
        exchange.sendJson(workspaceJson(parameters.workspace))
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/workspaces/{workspace}/console-links',
      id: 'issueConsoleLink',
      summary: 'Issue a link to the console',
      description:
        'Signs one person in to the console of a workspace, once, within half an hour. Put the address of the public listener in front of the path.',
      parameters: { workspace: { description: 'The name or id of a workspace.', example: 'acme' } },
      response: jsonResponse(
        Type.Object({
          path: Type.String({ example: '/console#link=4f0c…' }),
          expires_at: Type.String({ example: '2026-11-15T22:34:05.000Z' }),
        }),
        undefined,
        201,
      ),
      errors: ['not_found'],
      async answer({ exchange, parameters }) {
        const { secret, expiresAt } = await sessions.issueLink(parameters.workspace)
        const link = { path: `/console#link=${secret}`, expires_at: new Date(expiresAt).toISOString() }
        exchange.sendJson(JSON.stringify(link), 201)
      },
    }),
  ]
}
