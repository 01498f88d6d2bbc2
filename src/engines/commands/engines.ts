import { enginesOf, orderEngineOf, type EngineListing } from '../../operate/running-service.ts'
import { commandActor, CommandFailed, configOf, parseFlags, UsageError, type Command } from '../../cli/command.ts'
import { durationText } from '../../cli/terminal/amounts.ts'
import { renderTable, type Column } from '../../cli/terminal/table.ts'
import type { View } from '../../cli/terminal/view.ts'
import { bytesText } from '../../shared/bytes-text.ts'
import { count } from '../../shared/counts.ts'
import { engineOrders } from '../on-demand/on-demand.ts'

export const engines: Command = {
  summary: 'list the engines that Weir starts; start, stop or pin one',
  help: `weir engines
weir engines start|stop|sleep|wake|pin|unpin LANE

Lists the engines with "run" in the catalog, which Weir starts when they are
needed: their state, their requests, what is kept for them of the memory of
their device, how long the latest start took, why they last failed, and what a
failed one printed last. Memory without a figure in the catalog is "measured",
or "unmeasured" until the first requests; an unmeasured engine has its device to
itself. Run it on the machine where the service runs.

"start" starts one before the first request; "stop" ends it once its requests
have ended, until the next request starts it again; "sleep" and "wake" are for
vLLM with sleep mode. "pin" keeps it from being swapped or ended, until "unpin"
or a restart. LANE is the name of a model, or for reserved capacity
MODEL@WORKSPACE. Actions are written to the audit log.`,
  async run(args) {
    const flags = parseFlags(args, {}, 2)
    const [order, lane] = flags.positionals
    const { dataDir } = configOf(flags)
    if (order === undefined) {
      const data = (await enginesOf(dataDir)) ?? noService(dataDir)
      return flags.print({ object: 'list', data }, (view) => enginesText(data, view))
    }
    if (!(engineOrders as readonly string[]).includes(order)) {
      throw new UsageError(`there is no action "${order}"; leave it out, or use one of ${engineOrders.join(', ')}`)
    }
    if (lane === undefined) throw new UsageError(`give the lane of the engine: weir engines ${order} LANE`)
    const answer = (await orderEngineOf(dataDir, { lane, order, actor: commandActor() })) ?? noService(dataDir)
    if ('error' in answer) throw new CommandFailed(answer.error)
    flags.print({ lane, order }, () => `The order for ${lane} was given: ${order}. See: weir engines`)
  },
}

function noService(dataDir: string): never {
  throw new CommandFailed(`no service is running on ${dataDir}; start it with weir serve, or name another with --data`)
}

function enginesText(data: readonly EngineListing[], view: View): string {
  if (data.length === 0) return 'Weir starts no engine: none in the catalog has the key "run".'
  const columns: readonly Column<EngineListing>[] = [
    { title: 'LANE', cell: ({ lane }) => lane },
    {
      title: 'STATE',
      cell: ({ state, pinned }) => (pinned ? `${state}, pinned` : state),
      tone: ({ state }) => (state === 'failed' ? 'red' : state === 'ready' ? 'green' : undefined),
    },
    { title: 'RUNNING', cell: ({ running }) => count(running), align: 'right' },
    { title: 'WAITING', cell: ({ waiting }) => count(waiting), align: 'right' },
    { title: 'DEVICE', cell: ({ device }) => device },
    { title: 'MEMORY', cell: memoryText, align: 'right' },
    { title: 'LAST START', cell: ({ start_ms: starts }) => startText(starts.at(-1)), align: 'right' },
    { title: 'PROBLEM', cell: ({ problem }) => problem },
  ]
  return [renderTable(data, columns, view), ...data.filter(hasFailed).map(lastLinesText)].join('\n\n')
}

const hasFailed = ({ state, last_lines: lines }: EngineListing): boolean => state === 'failed' && lines.length > 0

function lastLinesText({ lane, last_lines: lines }: EngineListing): string {
  return [`${lane} printed last:`, ...lines.map((line) => `  ${line}`)].join('\n')
}

function memoryText({ device, memory_source: source, ...it }: EngineListing): string | null {
  if (device === null) return null
  const amounts = `${bytesText(it.held_bytes)} of ${bytesText(it.needed_bytes)}`
  return source === 'configured' ? amounts : `${amounts}, ${source}`
}

function startText(ms: number | undefined): string | null {
  return ms === undefined ? null : durationText(ms)
}
