import { hash, randomBytes } from 'node:crypto'
import type { ChangeFeed } from '../ports/changes.ts'
import type { Clock } from '../ports/clock.ts'
import type { SessionStore, StoredSession } from '../ports/sessions.ts'
import { knownByHash } from './known-by-hash.ts'

/**
 * Who is signed in to a console, and the one-time links that sign people in. Both are in the database, so they survive a
 * restart and every replica knows them. Sessions in use are in memory: a request writes nothing, and seldom reads.
 */
export interface Sessions {
  /** Begins a session. An owner has a limited number of sessions; the oldest one gives way. */
  open(who: SessionOwner): Promise<OpenedSession>
  /** undefined when there is no such session, or no longer. */
  find(token: string): Promise<Session | undefined>
  end(token: string): Promise<void>
  /** A secret that signs in once. */
  issueLink(owner: string): Promise<Link>
  /** Whose link it was; undefined when it has been used, has expired, or never existed. */
  redeem(secret: string): Promise<string | undefined>
}

export type SessionOwner = Pick<StoredSession, 'owner' | 'keyHash'>
export type Session = Pick<StoredSession, 'owner' | 'keyHash' | 'name' | 'expiresAt'>

export interface OpenedSession {
  /** For the cookie. */
  readonly token: string
  readonly expiresAt: number
}

export interface Link {
  readonly secret: string
  readonly expiresAt: number
}

/** Who owns the sessions of the operator's console. No workspace has such an id. */
export const OPERATOR = 'operator'
export const SESSION_MS = 12 * 3_600_000
const LINK_MS = 30 * 60_000
const LIMITS = { ofOwner: 50, ofAll: 10_000 }
/** 32 bytes. Nothing else is worth a lookup. */
const TOKEN = /^[\w-]{43}$/

/** `hashOf`: how a secret is stored. What one way stored, another one does not find. */
export function openSessions(
  store: SessionStore,
  clock: Clock,
  changes: ChangeFeed,
  hashOf: (secret: string) => string = (secret) => hash('sha256', secret),
): Sessions {
  const known = knownByHash<Session>({
    what: 'sessions',
    knownMax: LIMITS.ofAll,
    read: async (hashes) => new Map((await store.sessionsByHash(hashes)).map((it) => [it.hash, it])),
  })
  // New sessions need no announcement: no replica has looked for them before.
  changes.subscribe('sessions', async () => known.forgetAll())

  async function add(
    kind: StoredSession['kind'],
    bytes: number,
    who: SessionOwner,
    ms: number,
  ): Promise<[secret: string, expiresAt: number]> {
    const secret = randomBytes(bytes).toString('base64url')
    const now = clock.now()
    const session = {
      kind,
      hash: hashOf(secret),
      owner: who.owner,
      keyHash: who.keyHash,
      name: `console_${randomBytes(4).toString('hex')}`,
      expiresAt: now + ms,
    }
    if (await store.addSession(session, LIMITS, now)) await changes.announce('sessions')
    return [secret, session.expiresAt]
  }

  async function find(token: string): Promise<Session | undefined> {
    if (!TOKEN.test(token)) return undefined
    const session = await known.find(hashOf(token))
    return session !== null && session.expiresAt > clock.now() ? session : undefined
  }

  return {
    async open(who) {
      const [token, expiresAt] = await add('session', 32, who, SESSION_MS)
      return { token, expiresAt }
    },
    find,
    async end(token) {
      // A request without a session writes nothing, and makes no replica forget what it knows.
      if (!(await find(token))) return
      await store.removeSession(hashOf(token))
      await changes.announce('sessions')
    },
    async issueLink(owner) {
      // 128 bits for half an hour, so that a link fits on a line of a terminal.
      const [secret, expiresAt] = await add('link', 16, { owner, keyHash: null }, LINK_MS)
      return { secret, expiresAt }
    },
    async redeem(secret) {
      const link = await store.takeLink(hashOf(secret))
      return link && link.expiresAt > clock.now() ? link.owner : undefined
    },
  }
}
