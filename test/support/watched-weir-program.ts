import { startWeir } from './weir.ts'

/**
 * Runs the service in a process of its own and measures how much CPU time the main thread spends in one turn of its
 * event loop. CPU time rather than wall time, so that a busy machine does not count. See watched-weir.ts.
 */
const [config = '{}'] = process.argv.slice(2)
const weir = await startWeir(JSON.parse(config) as object)

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

let last = cpuMs()
let worst = 0
function sample(): void {
  const now = cpuMs()
  worst = Math.max(worst, now - last)
  last = now
  setTimeout(sample, 1)
}
sample()

/** What one turn may cost: as long as JSON.parse takes for a plain body of 20 MB. */
function calibrate(): number {
  const text = `{"text":"${'plain '.repeat(3_400_000)}"}`
  const times = Array.from({ length: 5 }, () => {
    const before = cpuMs()
    JSON.parse(text)
    return cpuMs() - before
  })
  return times.toSorted((one, other) => one - other)[2] ?? 0
}

process.on('message', (question: 'calibrate' | 'forget' | 'worst' | 'stop') => {
  if (question === 'stop') {
    void weir.stop().then(() => process.exit(0))
    return
  }
  const answer = question === 'calibrate' ? calibrate() : worst
  // The answer itself is not part of any request.
  last = cpuMs()
  if (question !== 'worst') worst = 0
  process.send?.(answer)
})
process.send?.({ base: weir.base, adminUrl: weir.adminUrl, dataDir: weir.dataDir, key: weir.key })
