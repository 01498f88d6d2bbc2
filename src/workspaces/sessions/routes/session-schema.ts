import { Type } from 'typebox'
import { memberRoles, operatorRoles } from '../../../shared/roles.ts'
import { EXAMPLE_TIME, nullable } from '../../../server/common-schema.ts'

/** A session, for the operator and for the person that it belongs to. */
export const sessionViewSchema = Type.Object({
  id: Type.String({ description: 'It is not secret.', example: 'console_1f0c2a9b' }),
  console: Type.Enum(['operator', 'workspace'], { example: 'workspace' }),
  workspace: nullable(Type.String({ example: 'acme' })),
  who: Type.String({
    description: 'The person, the key, or how the session was opened.',
    example: 'Ada Lovelace, ada@example.com',
  }),
  roles: Type.Array(Type.Enum([...operatorRoles, ...memberRoles]), { example: ['member'] }),
  started: Type.String({ example: EXAMPLE_TIME }),
  last_used: Type.String({ description: 'Within five minutes.', example: EXAMPLE_TIME }),
  expires_at: Type.String({ example: '2026-11-16T06:04:05.000Z' }),
  address: nullable(Type.String({ example: '203.0.113.7' }), 'Where it was opened from.'),
})

export const sessionIdParameter = { description: 'The id of a session.', example: 'console_1f0c2a9b' }
