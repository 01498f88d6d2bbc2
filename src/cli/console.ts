import { consoleLinkOf, findService } from '../operate/running-service.ts'
import { CommandFailed, configOf, parseFlags, UsageError, withStore, type Command } from './command.ts'

export const consoleLink: Command = {
  summary: 'print a fresh link that signs in to a console',
  help: `weir console [--workspace W]

Prints a link that signs in to the operator's console of the running service, or
with --workspace to the console of a workspace. It works once, within
30 minutes. Treat it like a password until then.

  --workspace W   the workspace whose console it opens`,
  async run(args) {
    const flags = parseFlags(args, { workspace: 'string' })
    const { dataDir } = configOf(flags)
    const workspace = flags.text('workspace')
    if (!findService(dataDir)) {
      throw new UsageError(`no service is running on ${dataDir}; start it with npm start, or name another with --data`)
    }
    const action = { action: 'issueConsoleLink', subject: workspace ?? 'operator', body: undefined }
    const url = await withStore(flags, { changes: false }, ({ record }) =>
      record({ ...action, state: async () => undefined }, () => issued(dataDir, workspace)),
    )
    flags.print({ url, workspace: workspace ?? null }, ({ paint }) =>
      [paint('cyan', url), paint('dim', 'It signs in once, within 30 minutes.')].join('\n'),
    )
  },
}

async function issued(dataDir: string, workspace: string | undefined): Promise<string> {
  const answer = await consoleLinkOf(dataDir, workspace)
  if (!answer) throw new CommandFailed('the service has just stopped')
  if ('error' in answer) throw new CommandFailed(answer.error)
  return answer.url
}
