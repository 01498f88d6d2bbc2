import assert from 'node:assert/strict'
import { openLane } from '../../../src/queue/lane.ts'
import type { Request } from './witness.ts'
import type { OpenLane, SimulatedLane } from './world.ts'

type Happening = readonly [Request, { readonly kind: string; readonly waitMs?: number }]
const preempted = { kind: 'preempted' }

/** Waits that end at the same time may expire in any order. */
function listed(happenings: readonly Happening[]): readonly string[] {
  const [expired, others] = [true, false].map((isExpired) =>
    happenings
      .filter(([, { kind }]) => (kind === 'overloaded') === isExpired)
      .map(([{ number }, { kind, waitMs }]) => `${number} ${kind} ${waitMs}`),
  )
  return [...expired!.toSorted(), ...others!]
}

/** Runs every event in a lane of Redis and in lane.ts. After each of them, both have decided and preempted the same, in the same order. */
export function beside(openRemote: OpenLane): OpenLane {
  return async (limits, decide, preempt) => {
    let expected: Happening[] = []
    let actual: Happening[] = []
    const pure = openLane<Request>(
      limits,
      (request, decision) => expected.push([request, decision]),
      (request) => expected.push([request, preempted]),
    )
    const remote = await openRemote(
      limits,
      (request, decision) => {
        actual.push([request, decision])
        decide(request, decision)
      },
      (request) => {
        actual.push([request, preempted])
        preempt(request)
      },
    )

    function compare(): void {
      assert.deepEqual(listed(actual), listed(expected))
      expected = []
      actual = []
      assert.deepEqual(remote.status(), pure.status())
      assert.equal(remote.nextDeadlineMs(), pure.nextDeadlineMs())
    }

    const lane: SimulatedLane = {
      async arrive(request, nowMs) {
        const decision = await remote.arrive(request, nowMs)
        assert.deepEqual(decision, pure.arrive(request, nowMs))
        compare()
        return decision
      },
      async leave(request, nowMs) {
        await remote.leave(request, nowMs)
        pure.leave(request, nowMs)
        // A script settles even if the place was unknown.
        pure.expire(nowMs)
        compare()
      },
      async keep(request, nowMs) {
        const isKept = await remote.keep(request, nowMs)
        assert.equal(isKept, pure.keep(request))
        compare()
        return isKept
      },
      async expire(nowMs) {
        await remote.expire(nowMs)
        pure.expire(nowMs)
        compare()
      },
      async setLimits(next, nowMs) {
        await remote.setLimits(next, nowMs)
        pure.setLimits(next, nowMs)
        compare()
      },
      /** Each replica closes by itself, in the order of its callers. */
      async close(waiting, nowMs) {
        await remote.close(waiting, nowMs)
        pure.close()
        expected = actual
        compare()
      },
      status: () => remote.status(),
      nextDeadlineMs: () => remote.nextDeadlineMs(),
    }
    return lane
  }
}
