import { setTimeout as sleep } from 'node:timers/promises'
import { drainReplica, replicasOf, type ReplicaListing } from '../../operate/running-service.ts'
import { systemClock } from '../../shared/system-clock.ts'
import {
  commandActor,
  CommandFailed,
  configOf,
  parseFlags,
  UsageError,
  type Command,
  type Flags,
} from '../../cli/command.ts'
import { durationText } from '../../cli/terminal/amounts.ts'
import { count } from '../../shared/counts.ts'
import { renderTable, type Column } from '../../cli/terminal/table.ts'
import type { View } from '../../cli/terminal/view.ts'

type Replica = ReplicaListing['data'][number]

/** How often --wait polls. */
const POLL_MS = 250

export const replicas: Command = {
  summary: 'list the replicas of the running service, or drain one',
  help: `weir replicas
weir replicas drain NAME [--wait]

Lists every serving process, at most a second old: its version, the epoch of
Redis that it has joined, how long it has run, its requests in flight and in the
queue, and how far its journal is behind the database. Run it on a machine where
a replica runs.

"drain" makes a replica stop: it refuses new and waiting requests with status
503 and Retry-After, finishes running requests, and leaves. In the meantime its
/readyz is 503. The action is written to the audit log.

  --wait   return when the replica has left`,
  async run(args) {
    const flags = parseFlags(args, { wait: 'boolean' }, 2)
    const [action, name] = flags.positionals
    if (action === undefined) {
      if (flags.values['wait']) throw new UsageError('--wait belongs to: weir replicas drain NAME')
      const listing = await listed(flags)
      return flags.print(listing, (view) => listingText(listing, systemClock.now(), view))
    }
    if (action !== 'drain') throw new UsageError(`there is no action "${action}"; leave it out, or use: drain NAME`)
    flags.refuseMore(2)
    if (!name) throw new UsageError('give the name of the replica: weir replicas drain NAME')
    await drain(flags, name)
  },
}

async function listed(flags: Flags): Promise<ReplicaListing> {
  const { dataDir } = configOf(flags)
  return (await replicasOf(dataDir)) ?? noService(dataDir)
}

async function drain(flags: Flags, name: string): Promise<void> {
  const { dataDir } = configOf(flags)
  const answer = (await drainReplica(dataDir, { name, actor: commandActor() })) ?? noService(dataDir)
  if ('error' in answer) throw new CommandFailed(answer.error)
  if (flags.values['wait'] === true) await gone(dataDir, name)
  const left = flags.values['wait'] === true
  flags.print({ name, asked: true, left }, () =>
    left ? `${name} has left.` : `${name} takes no new work, and leaves when its requests have finished.`,
  )
}

async function gone(dataDir: string, name: string): Promise<void> {
  while ((await replicasOf(dataDir))?.data.some((replica) => replica.name === name)) await sleep(POLL_MS)
}

function noService(dataDir: string): never {
  throw new CommandFailed(`no service is running on ${dataDir}; start it with weir serve, or name another with --data`)
}

export function listingText({ coordination, data }: ReplicaListing, now: number, view: View): string {
  const columns: readonly Column<Replica>[] = [
    { title: 'NAME', cell: ({ name }) => name },
    { title: 'VERSION', cell: ({ version }) => version },
    { title: 'EPOCH', cell: ({ epoch }) => epoch },
    { title: 'UP', cell: ({ started_at: at }) => durationText(Math.max(0, now - Date.parse(at))), align: 'right' },
    { title: 'IN FLIGHT', cell: (replica) => count(replica.in_flight_requests), align: 'right' },
    { title: 'QUEUED', cell: (replica) => count(replica.queue_depth), align: 'right' },
    { title: 'JOURNAL LAG', cell: (replica) => durationText(replica.journal_lag_ms), align: 'right' },
    {
      title: 'STATE',
      cell: ({ draining }) => (draining ? 'draining' : 'serving'),
      tone: ({ draining }) => (draining ? 'yellow' : undefined),
    },
  ]
  const table = renderTable(data, columns, view)
  if (coordination === 'joined' || coordination === 'alone') return table
  return `${table}\n\nRedis does not answer, so only the replica that was asked is listed.`
}
