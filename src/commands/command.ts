import { hostname, userInfo } from 'node:os'
import { parseArgs } from 'node:util'
import { recorded, type Action } from '../accounts/recorded.ts'
import { openAccounts, type Accounts } from '../accounts/accounts.ts'
import { openPriceBook, type PriceBook } from '../catalog/price-book.ts'
import { memoryChanges } from '../changes/memory.ts'
import { systemClock } from '../system-clock.ts'
import { loadConfig, type Config, type Overrides } from '../config.ts'
import type { Store } from '../ports/store.ts'
import { refreshService } from '../running-service.ts'
import { openSettledStore } from '../settled-books.ts'
import { hasLedger } from '../store/open.ts'
import { viewOn, type View } from './terminal/view.ts'

/** What all commands share: flags, help, output, and access to the data directory of a running or stopped service. */
export interface Command {
  readonly summary: string
  readonly help: string
  run(args: readonly string[]): Promise<void>
}

/** The command was used wrongly. Printed without a stack, with a hint to --help. */
export class UsageError extends Error {}

/** Something that can go wrong did, and the message says what to do. Printed without a stack. */
export class CommandFailed extends Error {}

/** A check found problems and has printed them. Only makes the command exit with status 1. */
export class ProblemsFound extends Error {}

export interface Flags {
  readonly values: Readonly<Record<string, string | boolean | undefined>>
  readonly positionals: readonly string[]
}

const common = { config: 'string', data: 'string', json: 'boolean', debug: 'boolean' } as const

/** `words` is how many arguments the command takes besides its options, such as 2 for `revoke ID`. */
export function parseFlags(
  args: readonly string[],
  flags: Readonly<Record<string, 'string' | 'boolean'>> = {},
  words = 0,
): Flags {
  const options = Object.fromEntries(Object.entries({ ...common, ...flags }).map(([name, type]) => [name, { type }]))
  try {
    const parsed = parseArgs({ args: [...args], options, allowPositionals: true, strict: true })
    refuseMore(parsed, words)
    return parsed
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new UsageError(firstSentence((error as Error).message))
  }
}

/** Refuses arguments that an action does not take. They are never ignored: they may be a mistyped option. */
export function refuseMore({ positionals }: Flags, words: number): void {
  const extra = positionals[words]
  if (extra === undefined) return
  const advice = words === 0 ? '' : '; put names with spaces in quotes'
  throw new UsageError(`unexpected argument "${extra}"${advice}`)
}

/** Node's message goes on at length; our hint to --help replaces the rest. */
function firstSentence(message: string): string {
  return message.split(/\.(?:\s|$)/, 1)[0] ?? message
}

export function text(flags: Flags, name: string): string | undefined {
  return flags.values[name] as string | undefined
}

export function requiredText(flags: Flags, name: string): string {
  const value = text(flags, name)
  if (value === undefined || value === '') throw new UsageError(`--${name} is required`)
  return value
}

/** How many rows of a list to print at a time. */
export function limitOf(flags: Flags): number {
  const limit = text(flags, 'limit') ?? '1000'
  if (/^\d{1,5}$/.test(limit) && Number(limit) >= 1 && Number(limit) <= 10_000) return Number(limit)
  throw new UsageError('--limit must be a whole number from 1 to 10000')
}

export function overridesOf(flags: Flags): Overrides {
  return { config: text(flags, 'config'), data: text(flags, 'data'), port: text(flags, 'port') }
}

export function configOf(flags: Flags): Config {
  return loadConfig(overridesOf(flags))
}

/** For commands that are about the files of SQLite. */
export function sqliteConfigOf(flags: Flags, instead: string): Config {
  const config = configOf(flags)
  if (config.databaseUrl === undefined) return config
  throw new CommandFailed(`the books are in PostgreSQL, not in the data directory: ${instead}`)
}

/**
 * A command in the wrong directory must not leave a new, empty ledger there. Only the service makes one, and a command
 * that changes something where a configuration or an option says that the ledger belongs.
 */
function requireLedger(flags: Flags, config: Config, { changes }: { changes: boolean }): void {
  const isNamed = text(flags, 'data') !== undefined
  const isConfigured = config.file !== undefined || sourceOf(config, 'data_dir') !== 'default'
  if (isNamed || (isConfigured && changes) || hasLedger(config)) return
  throw new CommandFailed(
    `there is no ledger in ${config.dataDir}; weir serve creates one, and --data DIR names another directory`,
  )
}

function sourceOf({ settings }: Config, key: string): string | undefined {
  return settings.find((setting) => setting.key === key)?.source
}

export interface Books {
  readonly config: Config
  readonly store: Store
  readonly accounts: Accounts
  readonly prices: PriceBook
  /** Does something and puts it on record in the audit log. */
  readonly record: <Done>(action: Action, act: () => Promise<Done>) => Promise<Done>
}

/** Opens the data directory for a command. With `changes`, a running service is told to reload afterwards. */
export async function withBooks<Result>(
  flags: Flags,
  options: { changes: boolean },
  work: (books: Books) => Promise<Result>,
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
    if (options.changes) sayUnreached((await refreshService(config.dataDir)) ?? (await tellOthers(config)))
    return result
  } finally {
    await store.close()
  }
}

/** Replicas on other machines hear of it through Redis. */
async function tellOthers({ redisUrl }: Config): Promise<readonly string[]> {
  if (redisUrl === undefined) return []
  const { tellReplicas } = await import('../changes/redis/visitor.ts')
  return tellReplicas(redisUrl, ['accounts', 'keys', 'prices'], systemClock)
}

/** A change is in force everywhere when its command returns, or the command says where it may not be. */
export function sayUnreached(replicas: readonly string[]): void {
  for (const replica of replicas) {
    process.stderr.write(`weir: this replica did not answer, and takes the change in when it can: ${replica}\n`)
  }
}

/** Who the audit log says it was. */
export const commandActor = (): string => `command by ${systemUser()} on ${hostname()}`

/** An id may have no name, such as that of a container. */
function systemUser(): string {
  try {
    return userInfo().username
  } catch {
    return `user ${process.getuid?.() ?? 'unknown'}`
  }
}

/** Prints one JSON object with --json, otherwise a text view of the same data. */
export function print(flags: Flags, data: object, human: (view: View) => string): void {
  process.stdout.write(flags.values['json'] ? `${JSON.stringify(data)}\n` : `${human(viewOn(process.stdout))}\n`)
}
