import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { testReplica } from './redis-replica.ts'

/**
 * A replica in a process of its own, with callers that come again and again. Each admitted caller is a connection to the
 * engine for as long as its work takes, so that the engine sees the truth, whatever happens to this process.
 * Arguments: the address of Redis, the port of the engine, the concurrency of the lane, the number of callers.
 */
const [url = '', port, concurrency, callers] = process.argv.slice(2)
const lane = 'chaos'
const replica = testReplica(url, { leaseMs: 1000 })
replica.admission.setLanes(
  new Map([
    [
      lane,
      { tokenBudget: 1_000_000, maxConcurrentRequests: Number(concurrency), maxQueueDepth: 1000, maxWaitMs: 60_000 },
    ],
  ]),
)
const stopping = new AbortController()

async function live(): Promise<void> {
  while (!stopping.signal.aborted) {
    await new Promise<void>((resolve) => {
      replica.admission.enter({ lane, workspace: 'acme', cost: 1 }, (decision, ticket) => {
        if (decision.kind !== 'admitted') return void setTimeout(resolve, 20)
        const admittedAt = Date.now()
        const work = connect(Number(port), '127.0.0.1', () => {
          work.write(`${process.pid} ${admittedAt}\n`)
          setTimeout(() => work.end(), 5 + Math.random() * 20)
        })
        work.on('error', () => {})
        work.resume()
        // The engine has seen the end before the place is given back.
        work.once('close', () => {
          ticket.leave()
          resolve()
        })
      })
    })
    await sleep(1)
  }
}

const lives = Array.from({ length: Number(callers) }, live)
process.once('SIGTERM', () => {
  stopping.abort()
  replica.admission.close()
  void Promise.all(lives)
    .then(() => replica.close())
    .then(() => process.exit())
})
