import { maker, requestOf, single, type Load, type Message, type Session } from './loads.ts'

/**
 * Loads that no constant was chosen by: other shapes than those in loads.ts. `npm run bench -- fleet held-out` plays them,
 * and those of loads.ts with other seeds.
 */

/** Agents that work for long: more system prompts, more calls, larger files, hardly a pause. */
export function longAgents(seed: number, sessionCount: number): Load {
  const make = maker(seed)
  const systems = Array.from({ length: 8 }, () => make.text(make.between(1000, 12_000)))
  const sessions = Array.from({ length: sessionCount }, () => {
    const messages: Message[] = [
      { role: 'system', content: make.oneOf(systems) },
      { role: 'user', content: make.text(make.between(20, 2000)) },
    ]
    const requests = Array.from({ length: make.between(10, 30) }, () => {
      const answer = make.text(make.between(20, 400))
      const request = requestOf(messages, answer)
      messages.push({ role: 'assistant', content: answer })
      messages.push({ role: 'tool', content: make.text(make.between(20, 2500)) })
      return request
    })
    return { requests, pauseMs: make.between(50, 500) }
  })
  return { name: 'long agents', sessions, sessionsPerEngine: 8 }
}

/** People who go back: every fourth question is asked again in other words. */
export function editedConversations(seed: number, sessionCount: number): Load {
  const make = maker(seed)
  const systems = Array.from({ length: 60 }, () => make.text(make.between(100, 3000)))
  const sessions = Array.from({ length: sessionCount }, () => {
    const messages: Message[] = [{ role: 'system', content: make.popular(systems) }]
    const requests = Array.from({ length: make.between(3, 14) }, () => {
      if (make.between(1, 4) === 1 && messages.length >= 3) messages.splice(-2)
      messages.push({ role: 'user', content: make.text(make.between(10, 400)) })
      const answer = make.text(make.between(50, 500))
      const request = requestOf(messages, answer)
      messages.push({ role: 'assistant', content: answer })
      return request
    })
    return { requests, pauseMs: make.between(500, 15_000) }
  })
  return { name: 'edited conversations', sessions, sessionsPerEngine: 40 }
}

/** People who each ask a few questions about a long document of their own. */
export function ownDocuments(seed: number, sessionCount: number): Load {
  const make = maker(seed)
  const sessions = Array.from({ length: sessionCount }, () => {
    const messages: Message[] = [{ role: 'user', content: make.text(make.between(5000, 20_000)) }]
    const requests = Array.from({ length: make.between(3, 8) }, () => {
      const answer = make.text(make.between(50, 300))
      const request = requestOf(messages, answer)
      messages.push({ role: 'assistant', content: answer }, { role: 'user', content: make.text(make.between(10, 80)) })
      return request
    })
    return { requests, pauseMs: make.between(500, 4000) }
  })
  return { name: 'own documents', sessions, sessionsPerEngine: 5 }
}

/** Jobs that ask forty questions about a new text, one after the other by four workers. */
export function jobs(seed: number, sessionCount: number): Load {
  const make = maker(seed)
  const sessions: Session[] = []
  while (sessions.length < sessionCount) {
    const text = make.text(make.between(1500, 6000))
    for (let worker = 0; worker < 4; worker++) {
      const requests = Array.from({ length: 10 }, () => {
        const question = make.text(make.between(20, 200))
        return requestOf(
          [
            { role: 'system', content: text },
            { role: 'user', content: question },
          ],
          make.text(60),
        )
      })
      sessions.push({ requests, pauseMs: 20 })
    }
  }
  return { name: 'jobs', sessions, sessionsPerEngine: 12 }
}

/** Far more applications than the caches hold. */
export function manyTenants(seed: number, sessionCount: number): Load {
  const make = maker(seed)
  const systems = Array.from({ length: 400 }, () => make.text(make.between(500, 6000)))
  const sessions = Array.from({ length: sessionCount }, () =>
    single(make, [
      { role: 'system', content: make.popular(systems) },
      { role: 'user', content: make.text(make.between(10, 600)) },
    ]),
  )
  return { name: 'many tenants', sessions, sessionsPerEngine: 24 }
}

/** A bit of everything at the same engines. */
export function mixed(seed: number, sessionCount: number): Load {
  const make = maker(seed)
  const parts = [longAgents(seed + 1, sessionCount / 8), manyTenants(seed + 2, sessionCount / 2)]
  const strangers = Array.from({ length: sessionCount / 2 }, () =>
    single(make, [{ role: 'user', content: make.text(make.between(50, 4000)) }]),
  )
  const all = [...parts.flatMap(({ sessions }) => sessions), ...strangers]
  const shuffled = all
    .map((session) => ({ session, place: make.between(0, 1e9) }))
    .toSorted((one, other) => one.place - other.place)
  return { name: 'mixed', sessions: shuffled.map(({ session }) => session), sessionsPerEngine: 16 }
}

/** As many applications, and hardly anything to do. */
export function quietTenants(seed: number, sessionCount: number): Load {
  return { ...manyTenants(seed, sessionCount), name: 'quiet tenants', sessionsPerEngine: 2 }
}

/** Prompts that have nothing in common, and hardly any of them. */
export function quiet(seed: number, sessionCount: number): Load {
  const make = maker(seed)
  const sessions = Array.from({ length: sessionCount }, () =>
    single(make, [{ role: 'user', content: make.text(make.between(200, 5000)) }]),
  )
  return { name: 'quiet', sessions, sessionsPerEngine: 2 }
}
