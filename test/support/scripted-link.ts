import type { LinkFollower, Membership, RedisLink } from '../../src/cluster/redis/link.ts'
import type { Script } from '../../src/cluster/redis/script.ts'

/** A script that was sent to Redis and not answered yet. */
export interface SentScript {
  readonly script: Script
  readonly keys: readonly string[]
  readonly values: readonly (string | number)[]
  answer(value: unknown): void
  fail(error?: Error): void
}

/** A link whose Redis is the test: it answers what the test says, when the test says so. */
export function scriptedLink({ leaseMs = 1000, replica = 'one' } = {}) {
  const followers: LinkFollower[] = []
  const sent: SentScript[] = []
  const published: (readonly [channel: string, message: string])[] = []
  const state = {
    membership: undefined as Membership | undefined,
    replicas: 2,
    proven: { sinceMs: 0, untilMs: leaseMs },
    publishFails: false,
  }
  const link: RedisLink = {
    replica,
    leaseMs,
    run: (script, keys, values) =>
      new Promise((answer, reject) => {
        sent.push({ script, keys, values, answer, fail: (error = new Error('cut')) => reject(error) })
      }),
    follow: (follower) => void followers.push(follower),
    async publish(channel, message) {
      if (state.publishFails) throw new Error('cut')
      published.push([channel, message])
    },
    membership: () => state.membership,
    replicas: () => state.replicas,
    proven: () => state.proven,
    close: async () => {},
  }
  return {
    link,
    sent,
    published,
    state,
    followers,
    join(membership: Partial<Membership> = {}): Membership {
      const joined = { epoch: 'one', incarnation: 1, quietUntilMs: 0, ...membership }
      state.membership = joined
      for (const follower of followers) follower.joined(joined)
      return joined
    },
    lose(): void {
      state.membership = undefined
      for (const follower of followers) follower.lost()
    },
    heartbeat: () => followers.forEach((follower) => follower.heartbeat()),
    receive: (channel: string, message: string) => followers.forEach((follower) => follower.receive(channel, message)),
    /** The oldest script that is not answered, which has to be this one. */
    next(script: Script): SentScript {
      const [first] = sent.splice(0, 1)
      if (first?.script.sha !== script.sha) throw new Error('another script was sent, or none')
      return first
    },
  }
}
