import { CommandFailed, ProblemsFound, UsageError, type Command } from './cli/command.ts'
import { ConfigError } from './shared/checked-yaml.ts'
import { diskFailureOf, explainDiskFailure } from './shared/disk-failure.ts'
import { ApiError } from './shared/errors.ts'
import { version } from './operate/version.ts'

/** The command line. Commands are loaded on demand, because most need only a small part of the service. */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('./cli/serve/serve.ts')).serve,
  chat: async () => (await import('./cli/chat.ts')).chat,
  batch: async () => (await import('./batches/commands/batch.ts')).batch,
  console: async () => (await import('./cli/console.ts')).consoleLink,
  check: async () => (await import('./operate/commands/check.ts')).check,
  config: async () => (await import('./operate/commands/config.ts')).config,
  doctor: async () => (await import('./operate/doctor/commands/doctor.ts')).doctor,
  workspaces: async () => (await import('./workspaces/commands/workspaces.ts')).workspaces,
  keys: async () => (await import('./workspaces/keys/commands/keys.ts')).keys,
  sessions: async () => (await import('./workspaces/sessions/commands/sessions.ts')).sessions,
  models: async () => (await import('./catalog/commands/models.ts')).models,
  engines: async () => (await import('./engines/commands/engines.ts')).engines,
  reload: async () => (await import('./operate/commands/reload.ts')).reload,
  prices: async () => (await import('./billing/prices/commands/prices.ts')).prices,
  usage: async () => (await import('./billing/usage/commands/usage.ts')).usage,
  invoice: async () => (await import('./billing/invoices/commands/invoice.ts')).invoice,
  webhooks: async () => (await import('./alerts/commands/webhooks.ts')).webhooks,
  reconcile: async () => (await import('./ledger/reconcile/commands/reconcile.ts')).reconcile,
  backup: async () => (await import('./operate/backup/commands/backup.ts')).backup,
  restore: async () => (await import('./operate/backup/commands/restore.ts')).restore,
  replicas: async () => (await import('./cluster/commands/replicas.ts')).replicas,
  journal: async () => (await import('./ledger/commands/journal.ts')).journal,
  migrate: async () => (await import('./store/commands/migrate.ts')).migrate,
  simulate: async () => (await import('./queue/commands/simulate.ts')).simulate,
}

const COMMON_HELP = `
Options of every command:
  --config FILE   configuration file (default: $WEIR_CONFIG, or ./weir.yaml)
  --data DIR      data directory (default: $WEIR_DATA_DIR, or data_dir in
                  weir.yaml, or ./data)
  --json          print one JSON object
  --debug         show where an unexpected error comes from
  --help          show this help`

// It is not an error when the reader stops early, as in `weir usage | head`. A full disk is one.
let unwritten: Error | undefined
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') unwritten ??= error
})
const code = await main(process.argv.slice(2))
// A failed command may have left something open that would keep the process alive, so exit explicitly. The callback
// waits until a slow reader has received all output, and the failure of the last write is reported only after it.
process.stdout.write('', () => setImmediate(exit))

function exit(): void {
  if (unwritten) process.stderr.write(`weir: the output could not be written: ${unwritten.message}\n`)
  process.exit(unwritten ? 1 : code)
}

async function main([name, ...args]: readonly string[]): Promise<number> {
  const load = name !== undefined && Object.hasOwn(commands, name) ? commands[name] : undefined
  if (name === '--version' || name === '-v') {
    process.stdout.write(`weir ${version}\n`)
    return 0
  }
  if (!load) {
    const wantsHelp = name === undefined || name === '--help' || name === '-h' || name === 'help'
    process[wantsHelp ? 'stdout' : 'stderr'].write(
      wantsHelp ? await overview() : `weir: there is no command "${name}"${meant(name)} See: weir --help\n`,
    )
    return wantsHelp ? 0 : 2
  }
  const command = await load()
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(`${command.help}\n${COMMON_HELP}\n`)
    return 0
  }
  try {
    await command.run(args)
    return 0
  } catch (error) {
    const isDebug = args.includes('--debug') && error instanceof Error
    process.stderr.write(`weir: ${isDebug ? error.stack : explain(error, String(name))}\n`)
    return error instanceof UsageError ? 2 : 1
  }
}

async function overview(): Promise<string> {
  const loaded = await Promise.all(Object.entries(commands).map(async ([name, load]) => [name, await load()] as const))
  const lines = loaded.map(([name, command]) => `  ${name.padEnd(12)}${command.summary}`)
  const hint = 'Run weir <command> --help for the options of a command, and weir --version for\nthe version.'
  return `weir <command> [options]\n\nCommands:\n${lines.join('\n')}\n\n${hint}\n`
}

/** The command that has the same letters as the mistyped one, or begins or ends like it. */
function meant(name: string): string {
  const letters = (word: string): string => word.split('').toSorted().join('')
  const found = Object.keys(commands).find(
    (it) => letters(it) === letters(name) || (name.length > 2 && it.startsWith(name)) || it === name.slice(0, -1),
  )
  return found === undefined ? '.' : `; did you mean "${found}"?`
}

/** Always one line. An unexpected error shows its stack only with --debug. */
function explain(error: unknown, command: string): string {
  if (error instanceof UsageError) return `${error.message.replace(/\.$/, '')}. See: weir ${command} --help`
  if (!(error instanceof Error)) return String(error)
  const message = error.message.split('\n', 1)[0] ?? ''
  if ([ConfigError, ApiError, ProblemsFound, CommandFailed].some((kind) => error instanceof kind)) return message
  if (!('code' in error)) return `${message}. This was not expected: run it again with --debug to see where it happened`
  if (error.code === 'ENOENT' && 'path' in error) return `${String(error.path)}: there is no such file or directory`
  if (error.code === 'EISDIR')
    return `${'path' in error ? String(error.path) : 'this'} is a directory; name a file in it`
  const failure = diskFailureOf(error.code)
  const place = 'path' in error ? String(error.path) : 'a file'
  return failure ? explainDiskFailure(failure, place, message) : message
}
