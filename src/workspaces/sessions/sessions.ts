import { hash, randomBytes } from 'node:crypto'
import type { ChangeFeed } from '../../cluster/changes/change-feed.ts'
import type { Clock } from '../../shared/clock.ts'
import type { HeldRole, Person, SessionQuery, SessionStore, StoredSession } from './session-store.ts'
import { knownByHash, recentValues } from '../keys/known-by-hash.ts'

/**
 * Who is signed in to a console, and the one-time links that sign people in. Both are in the database, so they survive a
 * restart and every replica can read them. Sessions in use are cached: a request writes nothing, and seldom reads.
 */
export interface Sessions {
  /** Opens a session. Beyond the limit of an owner's sessions, the oldest one ends. */
  open(who: SessionOwner): Promise<OpenedSession>
  /** undefined when the session does not exist, or no longer exists. */
  find(token: string): Promise<ConsoleSession | undefined>
  end(token: string): Promise<void>
  /** Moves the session of a person to another workspace. */
  move(token: string, owner: string): Promise<void>
  /** The sessions of everyone, or of some, the newest first. */
  list(query: Omit<SessionQuery, 'now'>): Promise<readonly StoredSession[]>
  /** Ends the session with this name, on every replica. Resolves with the session; undefined if there is none. */
  endByName(name: string): Promise<StoredSession | undefined>
  /** A secret that signs in once. */
  issueLink(owner: string): Promise<Link>
  /** Resolves with the owner of the link; undefined when it has been used, has expired, or never existed. */
  redeem(secret: string): Promise<string | undefined>
}

export interface SessionOwner extends Pick<StoredSession, 'owner' | 'keyHash' | 'address'> {
  /** Who signed in through the identity provider, what they may do, and for how long. */
  readonly person?: { readonly person: Person; readonly roles: readonly HeldRole[]; readonly ms: number }
}

export type ConsoleSession = StoredSession

export interface OpenedSession {
  /** For the cookie. */
  readonly token: string
  readonly expiresAt: number
}

export interface Link {
  readonly secret: string
  readonly expiresAt: number
}

/** The owner of the operator's console sessions. No workspace has this id. */
export const OPERATOR = 'operator'
export const SESSION_MS = 12 * 3_600_000
const LINK_MS = 30 * 60_000
/** How exactly the last use is known. A use is written no more often, so that requests seldom write. */
const USE_MS = 5 * 60_000
const LIMITS = { ofOwner: 50, ofAll: 10_000 }
/** The format of a token, 32 bytes. Nothing else needs a lookup. */
const TOKEN = /^[\w-]{43}$/

/** `hashOf` hashes secrets for storage. A session is found only with the same function. */
export function openSessions(
  store: SessionStore,
  clock: Clock,
  changes: ChangeFeed,
  hashOf: (secret: string) => string = (secret) => hash('sha256', secret),
): Sessions {
  const known = knownByHash<ConsoleSession>({
    what: 'sessions',
    knownMax: LIMITS.ofAll,
    read: async (hashes) => new Map((await store.sessionsByHash(hashes)).map((it) => [it.hash, it])),
  })
  /** When this process last wrote a use of a session. */
  const uses = recentValues<number>(LIMITS.ofAll)
  // A new session needs no announcement: no replica has cached that it does not exist.
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
      startedAt: now,
      usedAt: now,
      expiresAt: now + ms,
      address: who.address,
      person: who.person?.person ?? null,
      roles: who.person?.roles ?? [],
    }
    if (await store.addSession(session, LIMITS, now)) await changes.announce('sessions')
    return [secret, session.expiresAt]
  }

  async function find(token: string): Promise<ConsoleSession | undefined> {
    if (!TOKEN.test(token)) return undefined
    const session = await known.find(hashOf(token))
    const now = clock.now()
    if (session === null || session.expiresAt <= now) return undefined
    if (now - Math.max(session.usedAt, uses.get(session.hash) ?? 0) >= USE_MS) noteUse(session.hash, now)
    return session
  }

  /** No request waits for it, and none fails with it. */
  function noteUse(sessionHash: string, now: number): void {
    uses.set(sessionHash, now)
    store.sessionUsed(sessionHash, now).catch(() => {})
  }

  async function remove(sessionHash: string): Promise<void> {
    await store.removeSession(sessionHash)
    await changes.announce('sessions')
  }

  return {
    async open(who) {
      const [token, expiresAt] = await add('session', 32, who, who.person?.ms ?? SESSION_MS)
      return { token, expiresAt }
    },
    find,
    async end(token) {
      // A request without a session must not write, or clear the caches of replicas.
      if (await find(token)) await remove(hashOf(token))
    },
    async move(token, owner) {
      await store.moveSession(hashOf(token), owner)
      await changes.announce('sessions')
    },
    list: (query) => store.sessions({ ...query, now: clock.now() }),
    async endByName(name) {
      const [session] = await store.sessions({ name, now: clock.now(), limit: 1 })
      if (session) await remove(session.hash)
      return session
    },
    async issueLink(owner) {
      // 128 bits are enough for half an hour, and the link fits on one line of a terminal.
      const [secret, expiresAt] = await add('link', 16, { owner, keyHash: null, address: null }, LINK_MS)
      return { secret, expiresAt }
    },
    async redeem(secret) {
      const link = await store.takeLink(hashOf(secret))
      return link && link.expiresAt > clock.now() ? link.owner : undefined
    },
  }
}
