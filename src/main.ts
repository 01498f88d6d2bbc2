import { ProblemsFound, UsageMistake, type Command } from './commands/command.ts'
import { chat } from './commands/chat.ts'
import { doctor } from './commands/doctor.ts'
import { keys } from './commands/keys.ts'
import { models } from './commands/models.ts'
import { prices } from './commands/prices.ts'
import { serve } from './commands/serve.ts'
import { simulate } from './commands/simulate.ts'
import { usage } from './commands/usage.ts'
import { workspaces } from './commands/workspaces.ts'
import { FileMistake } from './core/checked-yaml.ts'
import { ApiError } from './core/errors.ts'

/** The command line. */
const commands: Readonly<Record<string, Command>> = {
  serve,
  chat,
  doctor,
  workspaces,
  keys,
  models,
  prices,
  usage,
  simulate,
}

const COMMON_HELP = `
Every command takes
  --config FILE, --data DIR   which service it is about (also WEIR_CONFIG, WEIR_DATA_DIR)
  --json                      one JSON object on stdout
  --help                      this text`

// A reader that has seen enough (`weir usage | head`) is no failure.
process.stdout.on('error', () => {})
const code = await main(process.argv.slice(2))
// A command that failed half-way may have left something open that would keep the process alive; but what
// it wrote may still be on its way to a slow reader.
process.stdout.write('', () => process.exit(code))

async function main([name, ...args]: readonly string[]): Promise<number> {
  const command = name !== undefined && Object.hasOwn(commands, name) ? commands[name] : undefined
  if (!command) {
    const asked = name === undefined || name === '--help' || name === 'help'
    process[asked ? 'stdout' : 'stderr'].write(
      asked ? overview() : `weir: there is no command "${name}"\n\n${overview()}`,
    )
    return asked ? 0 : 2
  }
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(`${command.help}\n${COMMON_HELP}\n`)
    return 0
  }
  try {
    await command.run(args)
    return 0
  } catch (error) {
    process.stderr.write(`weir: ${explain(error, String(name))}\n`)
    return error instanceof UsageMistake ? 2 : 1
  }
}

function overview(): string {
  const lines = Object.entries(commands).map(([name, command]) => `  ${name.padEnd(12)}${command.summary}`)
  return `weir <command> [--help]\n\n${lines.join('\n')}\n`
}

/** Mistakes are told in a line; what nobody expected keeps its stack. */
function explain(error: unknown, command: string): string {
  if (error instanceof UsageMistake) return `${error.message}. See: weir ${command} --help`
  if (error instanceof FileMistake || error instanceof ApiError || error instanceof ProblemsFound) return error.message
  if (error instanceof Error) return ('code' in error ? error.message : error.stack) ?? error.message
  return String(error)
}
