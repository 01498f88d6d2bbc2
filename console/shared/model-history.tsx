import { useLocation } from 'preact-iso/router'
import { ChartGroup } from './chart.tsx'
import { useData } from './data.ts'
import { Empty, Ready } from './parts.tsx'
import { PeriodChoice, periodIn, type Period } from './period.tsx'
import { TimesAndFailures, type Latency } from './times-and-failures.tsx'
import { CostChart, RequestsChart, type GroupNames, type UsageReport } from './usage-charts.tsx'

/** What a model did over time: its requests, what they cost, how long they waited and took. The period is in the address. */
export function ModelHistory({
  model,
  path,
  load,
  ...names
}: GroupNames & {
  model: string
  /** The page that it is on. */
  path: string
  load: (period: Period, signal: AbortSignal) => Promise<{ readonly report: UsageReport; readonly latency: Latency }>
}) {
  const { query, route } = useLocation()
  const period = periodIn(query)
  const loaded = useData((signal) => load(period, signal), [model, period.from, period.to])
  const choose = (chosen: Readonly<Record<string, string>>): void =>
    route(`${path}?${new URLSearchParams(chosen).toString()}`)
  return (
    <section class="stack" aria-label="History">
      <PeriodChoice of={period} choose={choose} />
      <Ready of={loaded}>
        {({ report, latency }) =>
          report.total.requests === 0 ? (
            <Empty title="It had no requests in this period" />
          ) : (
            <ChartGroup choosePeriod={(from, to) => choose({ from, to })}>
              <div class="charts">
                <RequestsChart report={report} {...names} />
                <CostChart report={report} {...names} />
              </div>
              <TimesAndFailures report={report} latency={latency} {...names} />
            </ChartGroup>
          )
        }
      </Ready>
    </section>
  )
}
