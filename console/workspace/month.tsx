import { date, exactAud, percent } from '../shared/format.ts'
import { Amount, Meter } from '../shared/parts.tsx'
import type { Answer } from './api.ts'

/** The month so far: what it cost, how fast, and what that means for the limit. */
export function Month({ of: month }: { of: Answer<'monthReport'> }) {
  const limit = month.spend_limit === null ? undefined : Number(month.spend_limit)
  const share = (month.now - month.from) / (month.to - month.from)
  return (
    <section class="panel stack" aria-labelledby="month">
      <div class="row apart">
        <h2 id="month">This month</h2>
        <span class="small soft">{percent(share)} of the month is over</span>
      </div>
      <dl class="month">
        <div>
          <dt>So far</dt>
          <dd>
            <Amount of={month.spent} />
          </dd>
        </div>
        <div>
          <dt>{month.per_day === null ? 'Pace' : `Pace, over ${days(month.pace_days)}`}</dt>
          <dd>
            {month.per_day === null ? (
              <small>after a day of use</small>
            ) : (
              <>
                <Amount of={month.per_day} /> <small>/ day</small>
              </>
            )}
          </dd>
        </div>
        <div>
          <dt>Forecast for the month</dt>
          <dd>{month.forecast === null ? <small>after three days of use</small> : <Amount of={month.forecast} />}</dd>
        </div>
        <div>
          <dt>Spend limit{month.spend_limit_kind === 'soft' ? ', soft' : ''}</dt>
          <dd>{month.spend_limit === null ? 'none' : exactAud(month.spend_limit)}</dd>
        </div>
      </dl>
      {limit === undefined ? null : (
        <>
          <Meter value={Number(month.spent)} max={limit} label="Spent of the limit" />
          <p class="small soft">
            {percent(limit > 0 ? Number(month.spent) / limit : 1)} of the limit is spent. {limitText(month, limit)}
          </p>
        </>
      )}
    </section>
  )
}

function limitText(month: Answer<'monthReport'>, limit: number): string {
  if (Number(month.spent) >= limit) {
    return month.spend_limit_kind === 'soft'
      ? 'The limit is reached. It is a soft one, so requests go on.'
      : 'The limit is reached: requests are refused until the month is over, or the operator raises it.'
  }
  if (month.forecast === null) return ''
  return month.reaches_limit_at === null
    ? 'At this pace the limit is not reached this month.'
    : `At this pace the limit is reached on ${date(month.reaches_limit_at)}.`
}

const days = (count: number): string => (count === 1 ? 'one day' : `${count} days`)
