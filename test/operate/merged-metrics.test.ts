import assert from 'node:assert/strict'
import { it } from 'node:test'
import { mergedMetrics } from '../../src/operate/telemetry/merged-metrics.ts'

it('merges the metrics of several workers: one head, and every sample with its worker', () => {
  const text = (count: number): string =>
    `# HELP requests Responses\n# TYPE requests counter\nrequests{status="200"} ${count}\n# HELP up Up\n# TYPE up gauge\nup 1\n`
  assert.equal(
    mergedMetrics(
      'worker',
      new Map([
        ['1', text(3)],
        ['2', `${text(4)}# HELP more More\n# TYPE more gauge\nmore{text="a b{"} 5\n`],
      ]),
    ),
    [
      '# HELP requests Responses',
      '# TYPE requests counter',
      'requests{worker="1",status="200"} 3',
      'requests{worker="2",status="200"} 4',
      '# HELP up Up',
      '# TYPE up gauge',
      'up{worker="1"} 1',
      'up{worker="2"} 1',
      '# HELP more More',
      '# TYPE more gauge',
      'more{worker="2",text="a b{"} 5',
      '',
    ].join('\n'),
  )
})
