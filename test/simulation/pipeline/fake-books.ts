import { ApiError } from '../../../src/shared/errors.ts'
import type { RequestRow } from '../../../src/ledger/rows.ts'
import type { Ledger } from '../../../src/ledger/ledger.ts'
import type { Spending } from '../../../src/workspaces/spend-limits/spending.ts'
import type { RequestSeen } from './request-seen.ts'
import type { Stage } from './stage.ts'

/** A hold is granted or refused at once, or after a while. */
export function fakeSpending(stage: Stage): Spending {
  return {
    hold(workspace, most) {
      const seen = stage.requests[Number(workspace.id)]!
      if (seen.isPreempted && seen.place === 'released') {
        stage.demand(seen.holdSettledWith === 0n, 'hold', seen, 'a preempted request keeps its hold')
        seen.runAgain()
      }
      stage.demand(seen.hold === 'none', 'hold', seen, 'a second hold')
      const { runs } = seen
      seen.hold = 'pending'
      seen.held = most
      return new Promise((resolve, reject) => {
        const decide = (): false => {
          if (stage.chance(0.05)) {
            seen.hold = 'refused'
            stage.count('spend limit reached')
            reject(new ApiError('spend_limit_exceeded', 'no room'))
          } else {
            seen.hold = 'granted'
            resolve({
              raise: (amount) => raiseHold(stage, seen, amount),
              settle(amount, settledAt) {
                if (runs === seen.runs) return settleHold(stage, seen, amount, settledAt)
                stage.demand(amount === 0n, 'hold', seen, 'the hold of an earlier run is settled with an amount')
              },
            })
          }
          stage.log(seen, `hold ${seen.hold}`)
          return false
        }
        if (stage.chance(0.5)) decide()
        else stage.later(decide)
      })
    },
  }
}

/** A hold that grows because the price has risen, or because the engine counted more than that, may be refused, too. */
async function raiseHold(stage: Stage, seen: RequestSeen, amount: bigint): Promise<void> {
  if (amount <= seen.held) return
  const isForCount = seen.note === 'noted'
  const isRefused = stage.chance(isForCount ? 0.5 : 0.4)
  if (isForCount) seen.isCountRefused = isRefused
  else seen.isRaiseRefused = isRefused
  stage.log(seen, `hold raised to ${amount}: ${isRefused ? 'refused' : 'granted'}`)
  const what = isForCount ? 'hold raised for a count' : 'hold raised'
  stage.count(isRefused ? `${what}, refused` : what)
  if (isRefused) throw new ApiError('spend_limit_exceeded', 'no room')
  seen.held = amount
}

function settleHold(stage: Stage, seen: RequestSeen, amount: bigint, settledAt: number | undefined): void {
  if (seen.holdSettledWith !== undefined) {
    // The pipeline frees every hold at the end, and only the first settlement counts.
    return stage.demand(amount === 0n, 'hold', seen, 'the hold is settled twice')
  }
  seen.holdSettledWith = amount
  stage.log(seen, `hold settled with ${amount}`)
  if (seen.isPreempted && seen.settling === 'none') {
    return stage.demand(amount === 0n, 'hold', seen, 'a request that is preempted costs something')
  }
  if (seen.isWaitingAgain)
    return stage.demand(amount === 0n, 'hold', seen, 'a request that was preempted costs something')
  stage.demand(seen.note !== 'noted' || seen.settling !== 'none', 'row', seen, 'the hold is settled without a row')
  stage.demand(seen.settling !== 'pending', 'hold', seen, 'the hold is settled before the row')
  const written = seen.settling === 'late' ? (seen.late ?? seen.row) : seen.row
  stage.demand(
    amount === (written?.amount ?? 0n),
    'hold',
    seen,
    `the hold is settled with ${amount}, the row says ${written?.amount}`,
  )
  stage.demand(settledAt === written?.settledAt, 'hold', seen, 'the hold is settled at another time than the row')
}

/** Writes succeed or fail, sooner or later. `settled` checks the row. */
export function fakeLedger(
  stage: Stage,
  settled: (seen: RequestSeen, row: RequestRow, late?: RequestRow) => void,
): Ledger {
  return {
    note({ requestId }) {
      const seen = stage.requests[Number(requestId)]!
      stage.demand(
        seen.place === 'admitted' && seen.note === 'none',
        'durable',
        seen,
        'the intent is noted twice, or without admission',
      )
      seen.note = stage.chance(0.07) ? 'failed' : 'noted'
      stage.log(seen, `intent ${seen.note}`)
      if (seen.note === 'noted') return
      stage.count('intent failed')
      throw new Error('the disk is full')
    },
    settle(row, late) {
      const seen = stage.requests[Number(row.requestId)]!
      settled(seen, row, late?.())
      seen.settling = 'pending'
      return new Promise((resolve, reject) => {
        stage.later(() => {
          seen.settling = stage.chance(0.15) ? 'late' : 'durable'
          stage.log(seen, `row ${seen.settling}`)
          if (seen.settling === 'durable') resolve()
          else {
            stage.count('row late')
            if (late) stage.count('withheld')
            reject(new Error('the disk is full'))
          }
          return false
        })
      })
    },
    status: () => ({ healthy: true, waiting: 0, lagMs: 0, journalBytes: 0, journalLagMs: 0, isStoreFailing: false }),
    readable: () => Promise.resolve(),
    flush: () => Promise.resolve(),
  }
}
