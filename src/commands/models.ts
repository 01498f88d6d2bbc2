import { formatPriceList } from '../core/rating.ts'
import { endpointsOf, modesOf } from '../core/catalog.ts'
import { configOf, parseFlags, print, table, UsageMistake, type Command } from './command.ts'

export const models: Command = {
  summary: 'what the catalog offers',
  help: `weir models list

The models of the catalog as the file describes them, with list prices in AUD excluding GST.`,
  async run(args) {
    const flags = parseFlags(args)
    if (flags.positionals[0] !== 'list') throw new UsageMistake('say what to do: list')
    const data = configOf(flags)
      .catalog.read()
      .map((model) => ({
        id: model.id,
        name: model.name,
        aliases: model.aliases,
        categories: model.categories,
        modes: modesOf(model),
        endpoints: endpointsOf(model),
        context_length: model.contextLength,
        pricing: formatPriceList(model.rates),
      }))
    print(flags, { object: 'list', data }, () =>
      table(data, ['id', 'categories', 'modes', 'context_length', 'pricing']),
    )
  },
}
