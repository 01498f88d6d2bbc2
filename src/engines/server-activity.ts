import type { ReportedLoad } from '../catalog/model.ts'

/** What is known about one server: its health, as calls show it, and the load that it reports. */
export interface ServerActivity {
  inFlight: number
  /** Incremented with everything that the server sends in its successful answers. */
  signsOfLife: number
  /** A call failed without an answer, and the server has sent nothing since. */
  isInDoubt: boolean
  /** By what it was asked with. */
  readonly loads: Map<string, LoadReading>
}

/** The last answer of a server that was asked for its load. */
interface LoadReading {
  load: ReportedLoad | undefined
  readAt: number
  reading: Promise<void> | undefined
}

/** Several deployments may use the same server. Each of them has to know about the calls of the others. */
export interface ServerActivities {
  /** `server` is an origin or the path of a socket. */
  join(server: string): { readonly activity: ServerActivity; leave(): void }
}

export function serverActivities(): ServerActivities {
  const known = new Map<string, { readonly activity: ServerActivity; users: number }>()
  return {
    join(server) {
      let entry = known.get(server)
      if (!entry) known.set(server, (entry = { activity: noActivity(), users: 0 }))
      const joined = entry
      joined.users++
      return {
        activity: joined.activity,
        leave() {
          joined.users--
          if (joined.users === 0) known.delete(server)
        },
      }
    },
  }
}

export function noActivity(): ServerActivity {
  return { inFlight: 0, signsOfLife: 0, isInDoubt: false, loads: new Map() }
}
