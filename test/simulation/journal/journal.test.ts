import { after, it } from 'node:test'
import { simulationSeed } from '../seed.ts'
import { smallJournal } from './small-journal.ts'
import { simulateJournal } from './world.ts'

const journal = smallJournal()
after(journal.remove)

it('loses, doubles and overbills nothing, wherever it crashes and whatever the crash leaves', async (t) => {
  const tally = await simulateJournal(await journal.load(), {
    seed: simulationSeed(),
    schedules: Number(process.env['WEIR_SCHEDULES'] ?? 20),
    isExhaustive: false,
  })
  t.diagnostic(`${tally.crashes} crashes, ${tally.recoveries} recoveries`)
})
