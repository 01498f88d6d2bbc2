import { ApiError } from '../core/errors.ts'
import { parsePriceList, priceRule, type PriceList } from '../core/rating.ts'
import {
  parseFlags,
  print,
  requiredText,
  table,
  text,
  UsageMistake,
  withBooks,
  type Command,
  type Flags,
} from './command.ts'

const FLAGS: Readonly<Record<string, keyof PriceList>> = {
  'input-per-million': 'input_per_million',
  'output-per-million': 'output_per_million',
  'cached-input-per-million': 'cached_input_per_million',
  'per-image': 'per_image',
  'per-audio-minute': 'per_audio_minute',
}

export const prices: Command = {
  summary: "give a workspace its own price of a model, or the catalog's again",
  help: `weir prices list --workspace W
weir prices set --workspace W --model SLUG --input-per-million 0.15 --output-per-million 0.45 …
weir prices clear --workspace W --model SLUG

AUD, excluding GST. The price replaces the catalog's for that workspace from the next request on; what was
used before keeps its price.

  --input-per-million, --output-per-million, --cached-input-per-million, --per-image, --per-audio-minute`,
  async run(args) {
    const priceFlags = Object.fromEntries(Object.keys(FLAGS).map((name) => [name, 'string' as const]))
    const flags = parseFlags(args, { workspace: 'string', model: 'string', ...priceFlags })
    const workspace = requiredText(flags, 'workspace')
    const [action] = flags.positionals
    switch (action) {
      case 'list':
        return withBooks(flags, { changes: false }, async ({ accounts, prices: book }) => {
          const own = book.workspacePrices(accounts.workspace(workspace).id)
          const data = [...own].map(([model, pricing]) => ({ model, pricing }))
          print(flags, { object: 'list', data }, () => table(data, ['model', 'pricing']))
        })
      case 'set':
        return change(flags, workspace, priceList(flags))
      case 'clear':
        return change(flags, workspace, null)
      default:
        throw new UsageMistake('say what to do: list, set or clear')
    }
  },
}

function change(flags: Flags, workspace: string, pricing: PriceList | null): Promise<void> {
  const slug = requiredText(flags, 'model')
  return withBooks(flags, { changes: true }, async ({ config, accounts, prices: book }) => {
    const model = config.catalog.read().find((it) => it.id === slug || it.aliases.includes(slug))
    if (!model) throw new ApiError('model_not_found', `The model '${slug}' is not in the catalog.`)
    await book.setWorkspacePrice(model, accounts.workspace(workspace).id, pricing)
    print(
      flags,
      { model: model.id, workspace, pricing },
      () => `${model.id} for ${workspace}: ${JSON.stringify(pricing)}`,
    )
  })
}

function priceList(flags: Flags): PriceList {
  const given = Object.entries(FLAGS).flatMap(([flag, key]) => {
    const value = text(flags, flag)
    return value === undefined ? [] : [[key, value] as const]
  })
  if (given.length === 0) throw new UsageMistake('give at least one price, such as --input-per-million 0.15')
  const pricing = Object.fromEntries(given) as PriceList
  const rates = parsePriceList(pricing)
  if ('badKey' in rates) throw new UsageMistake(`${rates.badKey} must be ${priceRule}`)
  return pricing
}
