import { bytesText } from '../../src/shared/bytes-text.ts'
import { count, milliseconds } from '../shared/format.ts'
import { State, type Health } from '../shared/parts.tsx'
import type { Answer } from './api.ts'
import { May } from './session.tsx'

/** Engines that Weir starts when they are needed. */

export type OnDemand = NonNullable<Answer<'listEngines'>['data'][number]['on_demand']>
export type EngineOrder = 'start' | 'stop' | 'sleep' | 'wake' | 'pin' | 'unpin'

const states: Readonly<Record<OnDemand['state'], readonly [Health, string]>> = {
  stopped: ['idle', 'Stopped'],
  starting: ['warn', 'Starting'],
  ready: ['good', 'Ready'],
  falling_asleep: ['warn', 'Falling asleep'],
  asleep: ['idle', 'Asleep'],
  waking: ['warn', 'Waking up'],
  stopping: ['warn', 'Stopping'],
  failed: ['bad', 'Failed'],
}

const settled: ReadonlySet<string> = new Set(['stopped', 'ready', 'asleep', 'failed'])

/** Whether the engine is on its way from one state to another. */
export const isChanging = ({ on_demand: onDemand }: Answer<'listEngines'>['data'][number]): boolean =>
  onDemand !== null && !settled.has(onDemand.state)

export function OnDemandState({ of: { state } }: { of: OnDemand }) {
  const [health, name] = states[state]
  return <State is={health}>{name}</State>
}

/** What it takes, how long it takes to start, and what an operator can do. */
export function OnDemandFacts({
  lane,
  of,
  order,
}: {
  lane: string
  of: OnDemand
  order: (order: EngineOrder) => void
}) {
  return (
    <div class="stack tight">
      {facts(of).map((fact) => (
        <div key={fact} class="small soft">
          {fact}
        </div>
      ))}
      {of.problem === null ? null : <div class="small">Last failure: {of.problem}</div>}
      {of.last_lines.length === 0 ? null : (
        <details class="small">
          <summary>What it printed last</summary>
          <pre class="wrap">{of.last_lines.join('\n')}</pre>
        </details>
      )}
      <May call="orderEngine">
        <div class="row">
          {ordersFor(of).map(([name, title]) => (
            <button
              key={name}
              type="button"
              class="plain small"
              aria-label={`${title} ${lane}`}
              onClick={() => order(name)}
            >
              {title}
            </button>
          ))}
        </div>
      </May>
    </div>
  )
}

function facts(of: OnDemand): readonly string[] {
  const { start_ms: starts, waiting } = of
  const last = starts.at(-1)
  return [
    ...memoryFacts(of),
    ...(last === undefined ? [] : [`The last start took ${milliseconds(last)}`]),
    ...(of.state === 'starting' && of.ready_in_ms !== null ? [`Ready in about ${milliseconds(of.ready_in_ms)}`] : []),
    ...(waiting === 0 ? [] : [`${count(waiting)} requests wait for it`]),
    ...(of.pinned ? ['Pinned: never swapped'] : []),
  ]
}

function memoryFacts(of: OnDemand): readonly string[] {
  const { device, device_bytes: all, needed_bytes: needed, held_bytes: held } = of
  if (device === null || all === null) return []
  const amount = `${bytesText(held === 0 ? needed : held)} of ${bytesText(all)} on ${device}${held === 0 ? ' when it runs' : ''}`
  const { memory_source: source, measured_bytes: measured } = of
  if (source === 'unmeasured') return [`${amount}, until its memory is measured`]
  if (source === 'measured') return [`${amount}, measured`]
  return [amount, ...(measured === null ? [] : [`Measured: ${bytesText(measured)}`])]
}

function ordersFor({ state, can_sleep: canSleep, pinned }: OnDemand): readonly (readonly [EngineOrder, string])[] {
  const runs = state === 'ready' || state === 'starting' || state === 'waking' || state === 'asleep'
  return [
    ...(state === 'stopped' || state === 'failed' ? [['start', 'Start'] as const] : []),
    ...(state === 'asleep' ? [['wake', 'Wake'] as const] : []),
    ...(state === 'ready' && canSleep ? [['sleep', 'Sleep'] as const] : []),
    ...(runs ? [['stop', 'Stop'] as const] : []),
    pinned ? ['unpin', 'Unpin'] : ['pin', 'Pin'],
  ]
}
