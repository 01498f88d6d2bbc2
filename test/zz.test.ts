import { it } from 'node:test'
import { chatStage } from './support/chat-stage.ts'
it('x', async (t) => {
  for (let i = 0; i < 30; i++) {
    const a = process.cpuUsage()
    const w = performance.now()
    await t.test('s', async (u) => {
      await chatStage(u)
    })
    const b = process.cpuUsage(a)
    if (i % 5 === 0) console.log(i, ((b.user + b.system) / 1000).toFixed(0), (performance.now() - w).toFixed(0))
  }
})
