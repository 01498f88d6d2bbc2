import { ApiError } from '../../../shared/errors.ts'
import { priceListSchema } from '../../../catalog/file.ts'
import { listPrices } from '../../../catalog/list-prices.ts'
import { pricesByKind, type BatchPrices, type ImagePrice, type ModelPrices } from '../../rating/price-kinds.ts'
import type { PriceList } from '../../rating/rating.ts'
import { findSchemaProblem, formatPath } from '../../../shared/json/schema-check.ts'
import { parseFlags, UsageError, withStore, type Command, type Flags } from '../../../cli/command.ts'
import { pricesLines, pricesText } from '../../../cli/terminal/amounts.ts'
import { renderTable, type Column } from '../../../cli/terminal/table.ts'
import type { View } from '../../../cli/terminal/view.ts'

const FLAGS: Readonly<Record<string, keyof PriceList>> = {
  'input-per-million': 'input_per_million',
  'output-per-million': 'output_per_million',
  'cached-input-per-million': 'cached_input_per_million',
  'per-image': 'per_image',
  'per-audio-minute': 'per_audio_minute',
}

export const prices: Command = {
  summary: "give a workspace its own prices, or the catalog's prices again",
  help: `weir prices list  --workspace W
weir prices set   --workspace W --model SLUG [--input-per-million AUD] …
weir prices clear --workspace W --model SLUG

Sets the prices that one workspace pays for a model, in AUD excluding GST. They
apply from the next request; earlier usage keeps its price. Prices that you
leave out stay at the catalog's.

  --workspace W                    the workspace
  --model SLUG                     the model
  --input-per-million AUD          price of 1M input tokens
  --output-per-million AUD         price of 1M output tokens
  --cached-input-per-million AUD   price of 1M cached input tokens
  --per-image AUD                  price of an image
  --image-prices LIST              prices by size and quality, such as
                                   1024x1792=0.08,1024x1792:hd=0.12; they
                                   replace the catalog's, and other images cost
                                   --per-image
  --per-audio-minute AUD           price of a minute of audio
  --batch PRICES                   prices of the tiers flex and batch: a factor
                                   such as 0.5, or AUD for 1M input, output and
                                   cached tokens, such as 0.05,0.10,0.01`,
  async run(args) {
    const priceFlags = Object.fromEntries(Object.keys(FLAGS).map((name) => [name, 'string' as const]))
    const flags = parseFlags(
      args,
      { workspace: 'string', model: 'string', 'image-prices': 'string', batch: 'string', ...priceFlags },
      1,
    )
    const workspace = flags.requiredText('workspace')
    const [action] = flags.positionals
    switch (action) {
      case 'list':
        return withStore(flags, { changes: false }, async ({ accounts, prices: book }) => {
          const own = book.workspacePrices(accounts.workspace(workspace).id)
          const data = [...own].map(([model, pricing]) => ({ model, pricing }))
          flags.print({ object: 'list', data }, (view) => ownPricesText(data, view))
        })
      case 'set':
        return change(flags, workspace, priceList(flags))
      case 'clear':
        return change(flags, workspace, null)
      default:
        throw new UsageError('choose an action: list, set or clear')
    }
  },
}

function change(flags: Flags, workspace: string, pricing: ModelPrices | null): Promise<void> {
  const slug = flags.requiredText('model')
  return withStore(flags, { changes: true }, async ({ config, accounts, prices: book, record }) => {
    const model = config.catalog.read().find((it) => it.id === slug || it.aliases.includes(slug))
    if (!model) throw new ApiError('model_not_found', `The model '${slug}' is not in the catalog.`)
    const lists = pricesByKind(pricing ? { ...listPrices(model), ...pricing } : {})
    if ('badKey' in lists) throw new UsageError(`${lists.badKey} must be ${lists.rule}`)
    const { id } = accounts.workspace(workspace)
    const action = {
      action: pricing ? 'setWorkspacePrice' : 'clearWorkspacePrice',
      subject: `${workspace} ${model.id}`,
      body: pricing ?? undefined,
      state: async () => ({ pricing: book.workspacePrices(id).get(model.id) ?? null }),
    }
    await record(action, () => book.setWorkspacePrice(model, id, pricing))
    flags.print({ model: model.id, workspace, pricing }, () =>
      pricing
        ? `${workspace} now pays for ${model.id}: ${pricesText({ ...listPrices(model), ...pricing })}.`
        : `${workspace} pays the list prices for ${model.id} again: ${pricesText(listPrices(model))}.`,
    )
  })
}

interface OwnPrices {
  readonly model: string
  readonly pricing: ModelPrices
}

const COLUMNS: readonly Column<{ readonly model: string; readonly price: string }>[] = [
  { title: 'MODEL', cell: ({ model }) => model },
  { title: 'PRICES (EXCLUDING GST)', cell: ({ price }) => price },
]

export function ownPricesText(data: readonly OwnPrices[], view: View): string {
  if (data.length === 0) return 'No prices of its own: the list prices apply.'
  const rows = data.flatMap(({ model, pricing }) =>
    // The model stands only in the first of its lines.
    pricesLines(pricing).map((price, index) => ({ model: index === 0 ? model : ' ', price })),
  )
  return renderTable(rows, COLUMNS, view)
}

function priceList(flags: Flags): ModelPrices {
  const given = Object.entries(FLAGS).flatMap(([flag, key]) => {
    const value = flags.text(flag)
    return value === undefined ? [] : [[key, value] as const]
  })
  const images = flags.text('image-prices')
  const batch = flags.text('batch')
  if (given.length === 0 && images === undefined && batch === undefined)
    throw new UsageError('give at least one price, such as --input-per-million 0.15')
  return {
    ...Object.fromEntries(given),
    ...(images === undefined ? {} : { image_prices: imagePrices(images) }),
    ...(batch === undefined ? {} : { batch: batchPrices(batch) }),
  }
}

function batchPrices(text: string): BatchPrices {
  const [input = '', output, cached] = text.split(',')
  const prices =
    output === undefined
      ? input
      : {
          input_per_million: input,
          output_per_million: output,
          ...(cached === undefined ? {} : { cached_input_per_million: cached }),
        }
  if (!findSchemaProblem(priceListSchema, { batch: prices })) return prices
  throw new UsageError('--batch takes a factor such as 0.5, or INPUT,OUTPUT[,CACHED] such as 0.05,0.10')
}

function imagePrices(list: string): readonly ImagePrice[] {
  const prices = list.split(',').map((entry) => {
    const [kind = '', price = ''] = entry.split('=')
    const [size = '', quality] = kind.split(':')
    return { size, ...(quality === undefined ? {} : { quality }), per_image: price }
  })
  const problem = findSchemaProblem(priceListSchema, { image_prices: prices })
  if (!problem) return prices
  throw new UsageError(
    `--image-prices takes SIZE[:QUALITY]=PRICE, such as 1024x1792:hd=0.12; ${formatPath(problem.path)} must be ${problem.expected}`,
  )
}
