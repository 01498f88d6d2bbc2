import { bytesText } from '../../src/shared/bytes-text.ts'
import { count, exactAud, milliseconds, percent } from '../shared/format.ts'
import type { Operations } from '../generated/operator-api.ts'
import { lanePath, workspacePath } from './paths.ts'

/** What needs attention, the worst first, and where to act on it. */

type Answer<Id extends keyof Operations> = Operations[Id]['answer']
type Lane = Answer<'listQueues'>['lanes'][number]
type Workspace = Answer<'listWorkspaces'>['data'][number]

export interface Attention {
  readonly level: 'bad' | 'warn'
  readonly title: string
  readonly text: string
  readonly action: { readonly title: string; readonly href: string }
}

export interface OperatorState {
  readonly health: Answer<'operatorHealth'>
  readonly engines: Answer<'listEngines'>['data']
  readonly replicas: Answer<'listReplicas'>
  readonly lanes: readonly Lane[]
  readonly workspaces: readonly Workspace[]
  /** AUD of this month by the name of the workspace. */
  readonly spent: ReadonlyMap<string, string>
}

/** The share of the disk below which its free space needs attention. */
export const DISK_LOW = 0.1
const LIMIT_NEAR = 0.9
const QUEUE_NEAR = 0.8
const JOURNAL_LATE_MS = 60_000

export function attentionOf(state: OperatorState): readonly Attention[] {
  const found = [
    ...ofHealth(state.health),
    ...state.engines.flatMap(ofEngine),
    ...ofReplicas(state.replicas),
    ...state.lanes.flatMap(ofLane),
    ...state.workspaces.flatMap((workspace) => ofWorkspace(workspace, state.spent.get(workspace.name) ?? '0')),
  ]
  return [...found.filter(({ level }) => level === 'bad'), ...found.filter(({ level }) => level === 'warn')]
}

function ofHealth({ database, coordination, disk }: Answer<'operatorHealth'>): readonly Attention[] {
  const replicas = { title: 'See the replicas', href: '/console/replicas' }
  const found: Attention[] = []
  if (database === 'away') {
    found.push({
      level: 'bad',
      title: 'The database does not answer',
      text: 'Requests go on, and their rows are kept in the journal. Start PostgreSQL before the journal is full.',
      action: replicas,
    })
  }
  if (coordination === 'apart' || coordination === 'stopped') {
    found.push({
      level: 'bad',
      title: 'Redis cannot be reached',
      text:
        coordination === 'stopped'
          ? 'This replica admits no new requests until Redis answers.'
          : 'Each replica serves within its allotment until Redis answers.',
      action: replicas,
    })
  }
  if (disk.size_bytes > 0 && disk.free_bytes / disk.size_bytes < DISK_LOW) {
    found.push({
      level: 'warn',
      title: `The disk has ${percent(disk.free_bytes / disk.size_bytes)} left`,
      text: `${bytesText(disk.free_bytes)} of ${bytesText(disk.size_bytes)} are free. Uploads are refused before the ledger runs out of room.`,
      action: replicas,
    })
  }
  return found
}

function ofEngine({ lane, kind, addresses, download }: OperatorState['engines'][number]): readonly Attention[] {
  const action = { title: 'See the engines', href: '/console/engines' }
  if (download?.state === 'failed') {
    return [{ level: 'bad', title: `${lane} was not downloaded`, text: download.problem ?? download.message, action }]
  }
  if (download || kind === null || addresses.length === 0) return []
  const down = addresses.filter(({ up }) => !up)
  const drained = addresses.filter((it) => it.up && it.drained)
  const isServed = addresses.some((it) => it.up && !it.drained)
  if (down.length === 0 && isServed) return []
  const failure = down.find((it) => it.last_failure !== null)?.last_failure
  if (down.length === 0) {
    return [
      {
        level: 'warn',
        title: `${lane} is drained`,
        text: `${drained.map(({ url }) => url).join(', ')}: its requests are refused until you undrain an address.`,
        action,
      },
    ]
  }
  return [
    {
      level: isServed ? 'warn' : 'bad',
      title: isServed
        ? `${lane}: ${count(down.length)} of ${count(addresses.length)} addresses are down`
        : `${lane} is down`,
      text: `${down.map(({ url }) => url).join(', ')}${failure ? `: ${failure}` : ''}`,
      action,
    },
  ]
}

function ofReplicas({ data }: OperatorState['replicas']): readonly Attention[] {
  const action = { title: 'See the replicas', href: '/console/replicas' }
  return data.flatMap(({ name, draining, journal_lag_ms: lag, journal_bytes: bytes }): Attention[] => [
    ...(draining
      ? [
          {
            level: 'warn' as const,
            title: `${name} is draining`,
            text: 'It leaves when its requests have finished.',
            action,
          },
        ]
      : []),
    ...(lag > JOURNAL_LATE_MS
      ? [
          {
            level: 'warn' as const,
            title: `The journal of ${name} is ${milliseconds(lag)} behind`,
            text: `${bytesText(bytes)} are not in the database yet.`,
            action,
          },
        ]
      : []),
  ])
}

function ofLane({ lane, queue_depth: waiting, oldest_wait_ms: oldest, limits }: Lane): readonly Attention[] {
  if (waiting < limits.max_queue_depth * QUEUE_NEAR || waiting === 0) return []
  const isFull = waiting >= limits.max_queue_depth
  return [
    {
      level: isFull ? 'bad' : 'warn',
      title: `The queue of ${lane} is ${isFull ? 'full' : 'nearly full'}`,
      text: `${count(waiting)} of ${count(limits.max_queue_depth)} wait, the oldest for ${milliseconds(oldest)}.`,
      action: { title: 'Try other limits', href: lanePath(lane) },
    },
  ]
}

function ofWorkspace(
  { name, spend_limit: limit, spend_limit_kind: kind }: Workspace,
  spent: string,
): readonly Attention[] {
  if (limit === null || Number(spent) < Number(limit) * LIMIT_NEAR) return []
  const isReached = Number(spent) >= Number(limit)
  const isRefused = isReached && kind === 'hard'
  return [
    {
      level: isRefused ? 'bad' : 'warn',
      title: `${name} has ${isReached ? 'reached' : `spent ${percent(Number(spent) / Number(limit))} of`} its limit`,
      text: `${exactAud(limit)} a month.${isRefused ? ' Its requests are refused.' : ''}`,
      action: { title: 'Change the limit', href: workspacePath(name) },
    },
  ]
}
