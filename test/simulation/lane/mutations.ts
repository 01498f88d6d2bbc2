import type { Mutation } from '../../mutants.ts'
import type { Invariant } from './witness.ts'

/** Mutations of src/queue/lane.ts, each with the invariant that it breaks. */
export const mutations: readonly (Mutation & { readonly breaks: Invariant })[] = [
  {
    name: 'barging: an arrival that fits is admitted past the queue',
    find: 'if (head === undefined && fits(place))',
    replace: 'if (fits(place))',
    breaks: 'I3',
  },
  {
    name: 'skipping: the one behind a head that does not fit is admitted first',
    find: 'const place = head\n',
    replace: 'const place = fits(head) ? head : (head.behind ?? head)\n',
    breaks: 'I3',
  },
  {
    name: 'last in, first out',
    find: 'const place = head\n',
    replace: 'const place = tail\n',
    breaks: 'I3',
  },
  {
    name: 'concurrency is off by one',
    find: 'inFlightRequests < limits.maxConcurrentRequests',
    replace: 'inFlightRequests <= limits.maxConcurrentRequests',
    breaks: 'I1',
  },
  {
    name: 'the budget is compared without the cost of the arrival',
    find: 'committedTokens + place.cost <= limits.tokenBudget',
    replace: 'committedTokens < limits.tokenBudget',
    breaks: 'I2',
  },
  {
    name: 'the last token of the budget is never used',
    find: 'committedTokens + place.cost <= limits.tokenBudget',
    replace: 'committedTokens + place.cost < limits.tokenBudget',
    breaks: 'I7',
  },
  {
    name: 'lost charge',
    find: 'committedTokens += place.cost',
    replace: 'committedTokens += 0',
    breaks: 'I2',
  },
  {
    name: 'a release returns one token less than was charged',
    find: 'committedTokens -= place.cost',
    replace: 'committedTokens -= Math.max(0, place.cost - 1)',
    breaks: 'I2',
  },
  {
    name: 'a release keeps the slot',
    find: 'inFlightRequests -= 1',
    replace: 'inFlightRequests -= 0',
    breaks: 'I2',
  },
  {
    name: 'double release: a request that has ended can release again',
    find: 'else return\n      settle(nowMs)',
    replace: 'else release(place)\n      settle(nowMs)',
    breaks: 'I2',
  },
  {
    name: 'missed pump after a release',
    find: "else if (place.state === 'in_flight') release(place)",
    replace: "else if (place.state === 'in_flight') return release(place)",
    breaks: 'I7',
  },
  {
    name: 'missed pump after a cancel',
    find: "if (place.state === 'queued') dequeue(place)",
    replace: "if (place.state === 'queued') return dequeue(place)",
    breaks: 'I7',
  },
  {
    name: 'missed pump after an expiry',
    find: 'expire: settle',
    replace: 'expire: expireDue',
    breaks: 'I7',
  },
  {
    name: 'missed pump after a change of limits',
    find: 'limits = checked(next)\n      settle(nowMs)',
    replace: 'limits = checked(next)',
    breaks: 'I7',
  },
  {
    name: 'the queue grows one beyond its depth',
    find: 'queueDepth >= limits.maxQueueDepth',
    replace: 'queueDepth > limits.maxQueueDepth',
    breaks: 'I4',
  },
  {
    name: 'queue_full one too early',
    find: 'queueDepth >= limits.maxQueueDepth',
    replace: 'queueDepth + 1 >= limits.maxQueueDepth',
    breaks: 'I4',
  },
  {
    name: 'late expiry: the deadline itself is not yet late',
    find: 'deadlineMs(due) <= nowMs',
    replace: 'deadlineMs(due) < nowMs',
    breaks: 'I5',
  },
  {
    name: 'early expiry',
    find: 'deadlineMs(due) <= nowMs',
    replace: 'deadlineMs(due) <= nowMs + 1',
    breaks: 'I5',
  },
  {
    name: 'capacity that is freed too late still admits',
    find: 'expireDue(nowMs)\n    pump(nowMs)',
    replace: 'pump(nowMs)\n    expireDue(nowMs)',
    breaks: 'I5',
  },
  {
    name: 'a changed maximum wait applies to callers that waited before',
    find: 'group?.maxWaitMs !== limits.maxWaitMs',
    replace: 'group === undefined',
    breaks: 'I5',
  },
  {
    name: 'a request waits although waiting is not allowed',
    find: 'if (limits.maxWaitMs === 0) return overloaded\n',
    replace: '',
    breaks: 'I5',
  },
  {
    name: 'a cancelled caller stays in the queue',
    find: "if (place.state === 'queued') dequeue(place)",
    replace: "if (place.state === 'queued') place.state = 'outside'",
    breaks: 'I6',
  },
  {
    name: 'a caller that leaves the queue is still counted',
    find: 'queueDepth -= 1',
    replace: 'queueDepth -= 0',
    breaks: 'I6',
  },
  {
    name: 'the tail is lost when the last in the queue goes away',
    find: 'if (behind === undefined) tail = ahead',
    replace: 'if (behind === undefined) tail = head',
    breaks: 'I5',
  },
  {
    name: 'two outcomes for one request',
    find: 'dequeue(place)\n    decide(place as P, decision)',
    replace: 'dequeue(place)\n    decide(place as P, decision)\n    decide(place as P, decision)',
    breaks: 'I8',
  },
  {
    name: 'close forgets the callers that wait',
    find: 'for (let place = head; place !== undefined; place = head) refuse(place, closed)',
    replace: '',
    breaks: 'I8',
  },
  {
    name: 'a closed lane accepts arrivals',
    find: 'if (isClosed) return closed\n',
    replace: '',
    breaks: 'I8',
  },
  {
    name: 'too_large is missed on arrival',
    find: 'if (place.cost > limits.tokenBudget) return tooLarge\n',
    replace: '',
    breaks: 'I10',
  },
  {
    name: 'a head larger than a lowered budget blocks the lane',
    find: 'if (place.cost > limits.tokenBudget) {',
    replace: 'if (false) {',
    breaks: 'I7',
  },
  {
    name: 'a lowered depth evicts the tail',
    find: 'limits = checked(next)\n',
    replace:
      'limits = checked(next)\n      while (tail && queueDepth > limits.maxQueueDepth) refuse(tail, queueFull)\n',
    breaks: 'I12',
  },
  {
    name: 'a lowered concurrency forgets requests in flight',
    find: 'limits = checked(next)\n',
    replace:
      'limits = checked(next)\n      inFlightRequests = Math.min(inFlightRequests, limits.maxConcurrentRequests)\n',
    breaks: 'I2',
  },
  {
    name: 'the wait is not measured from the arrival',
    find: 'waitMs: nowMs - place.arrivedAtMs',
    replace: 'waitMs: nowMs',
    breaks: 'I13',
  },
]
