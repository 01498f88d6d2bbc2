import type { SpendView } from '../../spend-limits/spending.ts'
import { Type } from 'typebox'
import { memberRoles } from '../../../shared/roles.ts'
import { personText, type HeldRole } from '../session-store.ts'
import { sessionList, sessionView } from '../session-list.ts'
import { sessionIdParameter, sessionViewSchema } from './session-schema.ts'
import type { SignedIn, WorkspaceSessions } from '../workspace-sessions.ts'
import { ApiError } from '../../../shared/errors.ts'
import { formatAud } from '../../../shared/money/money.ts'
import type { Accounts } from '../../accounts.ts'
import { listSchema, nullable } from '../../../server/common-schema.ts'
import { cookieHeaders, isOwnPage, sessionToken } from '../../../server/console/session-cookie.ts'
import { bodyErrors } from '../../../server/body.ts'
import { CONSOLE_BASE, readSmallBody, sessionRoute, type SessionRoute } from '../../../server/console/session-route.ts'
import { jsonResponse, type OpenRoute } from '../../../server/route.ts'

/** Signing in to the console of a workspace, and out of it. */

export interface ConsoleSessionParts {
  readonly accounts: Accounts
  readonly sessions: WorkspaceSessions
  readonly spending: SpendView
  readonly limits: { readonly requestsPerMinute: number }
}

const sessionSchema = Type.Object({
  object: Type.Literal('session'),
  workspace: Type.String({ example: 'acme' }),
  key_id: nullable(Type.String({ example: 'key_7f3a9c21' }), 'The key that signed in; null after a link.'),
  key_name: nullable(Type.String({ example: 'website' })),
  person: nullable(
    Type.String({ example: 'Ada Lovelace, ada@example.com' }),
    'Who signed in; null after a key or a link.',
  ),
  role: Type.Enum(memberRoles, { example: 'workspace_admin' }),
  workspaces: Type.Array(Type.String(), {
    description: 'The workspaces that the person can change to, and this one.',
    example: ['acme'],
  }),
  expires_at: Type.String({ example: '2026-11-16T10:04:05.000Z' }),
  requests_per_minute: Type.Integer({ example: 600 }),
  spend_limit: nullable(Type.String({ example: '250.00' }), 'AUD per month in Sydney, excluding GST.'),
  spend_limit_kind: nullable(Type.Enum(['soft', 'hard'], { example: 'hard' })),
  spent: Type.String({ description: 'AUD in this month, excluding GST.', example: '12.50' }),
})

const signInSchema = Type.Object(
  {
    key: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: 'An API key of the workspace.' })),
    link: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: 'The secret of a one-time link. Send this or key.' }),
    ),
  },
  { additionalProperties: false },
)

export function sessionRoutes(parts: ConsoleSessionParts): readonly (OpenRoute | SessionRoute)[] {
  return [
    signInRoute(parts),
    sessionRoute({
      method: 'GET',
      path: '/session',
      id: 'getSession',
      summary: 'The session',
      description: 'Who is signed in, and what the workspace may spend.',
      response: jsonResponse(sessionSchema),
      errors: [],
      answer: async ({ exchange, session }) => exchange.sendJson(await sessionJson(parts, session)),
    }),
    sessionRoute({
      method: 'DELETE',
      path: '/session',
      id: 'signOut',
      summary: 'Sign out',
      description: 'Ends the session.',
      roles: memberRoles,
      response: jsonResponse(Type.Object({ signed_out: Type.Literal(true) })),
      errors: [],
      async answer({ exchange }) {
        await parts.sessions.end(sessionToken(exchange, 'weir_session') ?? '')
        const headers = cookieHeaders(exchange, 'weir_session', undefined)
        exchange.send(200, 'application/json', '{"signed_out":true}', headers)
      },
    }),
    sessionRoute({
      method: 'PUT',
      path: '/session/workspace',
      id: 'moveSession',
      summary: 'Change the workspace',
      description: 'Moves the session to another workspace of the person.',
      roles: memberRoles,
      body: Type.Object({ workspace: Type.String({ minLength: 1, maxLength: 64, description: 'Its name.' }) }),
      example: { workspace: 'acme' },
      response: jsonResponse(sessionSchema),
      errors: ['not_found'],
      async answer({ exchange, body, session }) {
        const token = sessionToken(exchange, 'weir_session') ?? ''
        await parts.sessions.move(token, session, body.workspace)
        const moved = await parts.sessions.find(token)
        exchange.sendJson(await sessionJson(parts, moved ?? session))
      },
    }),
    sessionRoute({
      method: 'GET',
      path: '/sessions',
      id: 'ownSessions',
      summary: 'Own sessions',
      description: 'The sessions of the same person or key, the newest first. After a link, only this one.',
      response: jsonResponse(
        listSchema(Type.Object({ ...sessionViewSchema.properties, is_current: Type.Boolean({ example: true }) })),
      ),
      errors: [],
      async answer({ exchange, session }) {
        const own = await parts.sessions.own(session)
        const { data } = await sessionList(parts.accounts, own, own.length)
        const views = data.map((view) => ({ ...view, is_current: view.id === session.session.name }))
        exchange.sendJson(JSON.stringify({ object: 'list', data: views }))
      },
    }),
    sessionRoute({
      method: 'DELETE',
      path: '/sessions/{id}',
      id: 'endOwnSession',
      summary: 'End an own session',
      description: 'Its next request is refused.',
      roles: memberRoles,
      parameters: { id: sessionIdParameter },
      response: jsonResponse(Type.Object({ ended: Type.Literal(true) })),
      errors: ['not_found'],
      action: ({ parameters: { id }, session }) => ({
        action: 'endSession',
        subject: id,
        async state() {
          const found = (await parts.sessions.own(session)).find(({ name }) => name === id)
          return found && sessionView(parts.accounts, found)
        },
      }),
      async answer({ exchange, parameters: { id }, session }) {
        await parts.sessions.endOwn(session, id)
        exchange.sendJson('{"ended":true}')
      },
    }),
  ]
}

/** Counted like any request without a key, so that secrets cannot be guessed by brute force. */
function signInRoute(parts: ConsoleSessionParts): OpenRoute {
  const { sessions } = parts
  return {
    method: 'POST',
    path: `${CONSOLE_BASE}/session`,
    access: 'open',
    isCounted: true,
    operation: {
      id: 'signIn',
      summary: 'Sign in',
      description: 'With an API key or the secret of a one-time link. Sets the cookie of the session.',
      request: { contentType: 'application/json', schema: signInSchema, example: { key: 'weir_…' } },
      response: jsonResponse(sessionSchema),
      errors: [...bodyErrors, 'missing_api_key', 'invalid_api_key', 'key_not_allowed', 'rate_limit_exceeded'],
    },
    async answer(exchange) {
      if (!isOwnPage(exchange))
        throw new ApiError('missing_api_key', 'Sign in from the console: send X-Weir-Console: 1.')
      const { key, link } = await readSmallBody(exchange, signInSchema)
      if ((key === undefined) === (link === undefined)) {
        throw new ApiError('missing_required_parameter', "Send either 'key' or 'link'.", { param: 'key' })
      }
      const opened = await (key === undefined
        ? sessions.signInWithLink(link ?? '', exchange.address)
        : sessions.signInWithKey(key.trim(), exchange.address))
      const session = opened && (await sessions.find(opened.token))
      if (!session) throw refusal(key !== undefined)
      if (session.caller.rules?.allowsAddress(exchange.address) === false) {
        await sessions.end(opened.token)
        throw new ApiError('key_not_allowed', `This API key may not be used from ${exchange.address}.`)
      }
      const headers = cookieHeaders(exchange, 'weir_session', opened.token)
      exchange.send(200, 'application/json', await sessionJson(parts, session), headers)
    },
  }
}

function refusal(isKey: boolean): ApiError {
  return new ApiError(
    'invalid_api_key',
    isKey
      ? 'The API key is not valid. It may be mistyped, revoked, or expired.'
      : 'This link has been used or has expired. Ask the operator for a new one (weir console --workspace NAME), or sign in with an API key.',
  )
}

function workspacesOf(accounts: Accounts, roles: readonly HeldRole[]): readonly string[] {
  const ids = new Set(roles.map(({ workspaceId = '' }) => workspaceId))
  return [...ids].flatMap((id) => accounts.workspaceById(id)?.name ?? []).toSorted()
}

async function sessionJson(
  { accounts, spending, limits }: ConsoleSessionParts,
  { caller, hasKey, role, session: { person, roles, expiresAt } }: SignedIn,
): Promise<string> {
  const { workspace, keyId } = caller
  const key = hasKey ? await accounts.key(keyId) : undefined
  return JSON.stringify({
    object: 'session',
    workspace: workspace.name,
    key_id: key?.id ?? null,
    key_name: key?.name ?? null,
    person: person && personText(person),
    role,
    workspaces: person ? workspacesOf(accounts, roles) : [workspace.name],
    expires_at: new Date(expiresAt).toISOString(),
    requests_per_minute: workspace.requestsPerMinute ?? limits.requestsPerMinute,
    spend_limit: workspace.spendLimit && formatAud(workspace.spendLimit.amount),
    spend_limit_kind: workspace.spendLimit && (workspace.spendLimit.isSoft ? 'soft' : 'hard'),
    spent: formatAud(await spending.spent(workspace.id)),
  })
}
