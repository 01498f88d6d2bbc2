import { hostname, userInfo } from 'node:os'
import { parseArgs } from 'node:util'
import { recorded, type Action } from '../operate/audit/recorded.ts'
import { openAccounts, type Accounts } from '../workspaces/accounts.ts'
import { openPriceBook, type PriceBook } from '../billing/prices/price-book.ts'
import { commandChanges } from '../cluster/changes/change-feed.ts'
import { memoryChanges } from '../cluster/changes/memory.ts'
import { systemClock } from '../shared/system-clock.ts'
import { loadConfig, type Config, type Overrides } from '../config.ts'
import type { Store } from '../store/store.ts'
import { refreshService } from '../operate/running-service.ts'
import { openSettledStore } from './settled-store.ts'
import { hasLedger } from '../store/database-choice.ts'
import { viewOn, type View } from './terminal/view.ts'

/** What all commands share: flags, help, output, and access to the data directory of a running or stopped service. */
export interface Command {
  readonly summary: string
  readonly help: string
  run(args: readonly string[]): Promise<void>
}

/** The command was used wrongly. Printed without a stack, with a hint to --help. */
export class UsageError extends Error {}

/** An expected failure, whose message says what to do. Printed without a stack. */
export class CommandFailed extends Error {}

/** A check found problems and has printed them. Only makes the command exit with status 1. */
export class ProblemsFound extends Error {}

const common = { config: 'string', data: 'string', json: 'boolean', debug: 'boolean' } as const

/** The options and arguments that a command was given. */
export class Flags {
  readonly values: Readonly<Record<string, string | boolean | undefined>>
  readonly positionals: readonly string[]

  constructor({ values, positionals }: Pick<Flags, 'values' | 'positionals'>) {
    this.values = values
    this.positionals = positionals
  }

  text(name: string): string | undefined {
    return this.values[name] as string | undefined
  }

  requiredText(name: string): string {
    const value = this.text(name)
    if (value === undefined || value === '') throw new UsageError(`--${name} is required`)
    return value
  }

  /** How many rows of a list to print at a time. */
  limit(): number {
    const limit = this.text('limit') ?? '1000'
    if (/^\d{1,5}$/.test(limit) && Number(limit) >= 1 && Number(limit) <= 10_000) return Number(limit)
    throw new UsageError('--limit must be a whole number from 1 to 10000')
  }

  /** Refuses arguments that an action does not take. They are never ignored: they may be a mistyped option. */
  refuseMore(words: number): void {
    const extra = this.positionals[words]
    if (extra === undefined) return
    const advice = words === 0 ? '' : '; put names with spaces in quotes'
    throw new UsageError(`unexpected argument "${extra}"${advice}`)
  }

  /** Prints one JSON object with --json, otherwise a text view of the same data. */
  print(data: object, human: (view: View) => string): void {
    process.stdout.write(this.values['json'] ? `${JSON.stringify(data)}\n` : `${human(viewOn(process.stdout))}\n`)
  }
}

/** `words` is how many arguments the command takes besides its options, such as 2 for `revoke ID`. */
export function parseFlags(
  args: readonly string[],
  flags: Readonly<Record<string, 'string' | 'boolean'>> = {},
  words = 0,
): Flags {
  const options = Object.fromEntries(Object.entries({ ...common, ...flags }).map(([name, type]) => [name, { type }]))
  let parsed: Flags
  try {
    parsed = new Flags(parseArgs({ args: [...args], options, allowPositionals: true, strict: true }))
  } catch (error) {
    throw new UsageError(firstSentence((error as Error).message))
  }
  parsed.refuseMore(words)
  return parsed
}

/** Node's message is long; our hint to --help replaces the rest. */
function firstSentence(message: string): string {
  return message.split(/\.(?:\s|$)/, 1)[0] ?? message
}

export function overridesOf(flags: Flags): Overrides {
  return { config: flags.text('config'), data: flags.text('data'), port: flags.text('port') }
}

export function configOf(flags: Flags): Config {
  return loadConfig(overridesOf(flags))
}

/** For commands that work on the files of SQLite. */
export function sqliteConfigOf(flags: Flags, instead: string): Config {
  const config = configOf(flags)
  if (config.databaseUrl === undefined) return config
  throw new CommandFailed(`the ledger is in PostgreSQL, not in the data directory: ${instead}`)
}

/**
 * A command in the wrong directory must not create a new, empty ledger there. Only the service creates one, or a
 * command that changes something if a configuration or an option names the directory.
 */
function requireLedger(flags: Flags, config: Config, { changes }: { changes: boolean }): void {
  const isNamed = flags.text('data') !== undefined
  const isConfigured = config.file !== undefined || sourceOf(config, 'data_dir') !== 'default'
  if (isNamed || (isConfigured && changes) || hasLedger(config)) return
  throw new CommandFailed(
    `there is no ledger in ${config.dataDir}; weir serve creates one, and --data DIR names another directory`,
  )
}

function sourceOf({ settings }: Config, key: string): string | undefined {
  return settings.find((setting) => setting.key === key)?.source
}

export interface OpenedStore {
  readonly config: Config
  readonly store: Store
  readonly accounts: Accounts
  readonly prices: PriceBook
  /** Performs an action and records it in the audit log. */
  readonly record: <Done>(action: Action, act: () => Promise<Done>) => Promise<Done>
}

/** Opens the data directory for a command. With `changes`, a running service is asked to reload afterwards. */
export async function withStore<Result>(
  flags: Flags,
  options: { changes: boolean },
  work: (books: OpenedStore) => Promise<Result>,
): Promise<Result> {
  const config = configOf(flags)
  requireLedger(flags, config, options)
  const isNew = !hasLedger(config)
  const store = await openSettledStore(config)
  if (isNew && !flags.values['json']) process.stderr.write(`weir: created a new ledger in ${config.dataDir}\n`)
  try {
    const changes = memoryChanges()
    const accounts = await openAccounts(store, systemClock, changes)
    const prices = await openPriceBook(store, systemClock, changes)
    const doer = { actor: commandActor(), requestId: '' }
    const result = await work({
      config,
      store,
      accounts,
      prices,
      record: (action, act) => recorded({ audit: store, clock: systemClock }, doer, action, act),
    })
    if (options.changes) reportUnreached((await refreshService(config.dataDir)) ?? (await notifyOtherReplicas(config)))
    return result
  } finally {
    await store.close()
  }
}

/** Notifies replicas on other machines through Redis. */
async function notifyOtherReplicas({ redisUrl }: Config): Promise<readonly string[]> {
  if (redisUrl === undefined) return []
  const { notifyReplicas } = await import('../cluster/changes/redis/notify-replicas.ts')
  return notifyReplicas(redisUrl, commandChanges, systemClock)
}

/** A change is in force everywhere when its command returns; otherwise the command reports where it may not be. */
export function reportUnreached(replicas: readonly string[]): void {
  for (const replica of replicas) {
    process.stderr.write(`weir: this replica did not answer, and takes the change in when it can: ${replica}\n`)
  }
}

/** The actor in the audit log. */
export const commandActor = (): string => `command by ${systemUser()} on ${hostname()}`

/** An id may have no name, for example in a container. */
function systemUser(): string {
  try {
    return userInfo().username
  } catch {
    return `user ${process.getuid?.() ?? 'unknown'}`
  }
}
