import { parseFlags, UsageError, withStore, type Command } from '../../../cli/command.ts'
import { renderTable, type Column } from '../../../cli/terminal/table.ts'
import { minuteText } from '../../../cli/terminal/times.ts'
import type { View } from '../../../cli/terminal/view.ts'
import { memoryChanges } from '../../../cluster/changes/memory.ts'
import { ApiError } from '../../../shared/errors.ts'
import { systemClock } from '../../../shared/system-clock.ts'
import { sessionList, sessionView, type SessionList, type SessionView } from '../session-list.ts'
import { openSessions } from '../sessions.ts'

export const sessions: Command = {
  summary: 'list and end the sessions of people in the consoles',
  help: `weir sessions list [--limit N] [--before ID]
weir sessions end ID

"list" shows who is signed in to either console, the newest first: the person
or the key, their role, and when the session was last used, within five
minutes. "end" takes effect immediately, also in a running service. The person
can sign in again; to prevent that, take them out of their group, or revoke
the key.

  --limit N        how many sessions to list, 1 to 10000; by default 1000
  --before ID      continue after the session with this id`,
  async run(args) {
    const flags = parseFlags(args, { limit: 'string', before: 'string' }, 2)
    const [action, id] = flags.positionals
    if (action === 'list') {
      flags.refuseMore(1)
      const limit = flags.limit()
      return withStore(flags, { changes: false }, async ({ accounts, store }) => {
        const query = { before: flags.text('before'), limit: limit + 1, now: systemClock.now() }
        const list = await sessionList(accounts, await store.sessions(query), limit)
        flags.print(list, (view) => sessionsText(list, view))
      })
    }
    if (action !== 'end') throw new UsageError('choose an action: list or end')
    if (!id) throw new UsageError('give the id of the session: weir sessions end ID')
    return withStore(flags, { changes: true }, async ({ accounts, store, record }) => {
      // The command notifies the running service afterwards.
      const opened = openSessions(store, systemClock, memoryChanges())
      const state = async (): Promise<SessionView | undefined> => {
        const [found] = await opened.list({ name: id, limit: 1 })
        return found && sessionView(accounts, found)
      }
      const ended = await record({ action: 'endSession', subject: id, body: undefined, state }, async () => {
        const session = await opened.endByName(id)
        if (!session) throw new ApiError('not_found', `There is no session "${id}".`, { param: 'id' })
        return sessionView(accounts, session)
      })
      flags.print(ended, () => `The session ${ended.id} of ${ended.who} has ended.`)
    })
  },
}

function sessionsText({ data, next }: SessionList, view: View): string {
  const columns: readonly Column<SessionView>[] = [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'WHO', cell: ({ who }) => who, mayShrink: true },
    { title: 'CONSOLE', cell: ({ workspace }) => workspace ?? 'operator', mayShrink: true },
    { title: 'ROLE', cell: ({ roles }) => roles.join(', ') },
    { title: 'LAST USED', cell: ({ last_used: at }) => minuteText(at) },
    { title: 'EXPIRES', cell: ({ expires_at: at }) => minuteText(at) },
    { title: 'ADDRESS', cell: ({ address }) => address },
  ]
  const more = next === null ? [] : [`There are more sessions: see them with --before ${next}.`]
  return [data.length === 0 ? 'No one is signed in.' : renderTable(data, columns, view), ...more].join('\n\n')
}
