import { useState } from 'preact/hooks'
import { useAction } from './action.tsx'
import { sydneyDate } from './format.ts'
import { Field, Form } from './form.tsx'
import { Segments } from './parts.tsx'

/** The days that a page is about: the last ones, this month, or any from one day to another. They are in the address. */

const DAY_MS = 86_400_000
const presets = [
  ['1', 'Today'],
  ['7', '7 days'],
  ['30', '30 days'],
  ['90', '90 days'],
  ['month', 'This month'],
] as const
type Preset = (typeof presets)[number][0]

export interface Period {
  /** Days in Sydney, both inclusive. */
  readonly from: string
  readonly to: string
  readonly preset: Preset | 'own'
  /** What the address says about it. */
  readonly query: Readonly<Record<string, string>>
}

const isDay = (text: string | undefined): text is string => /^\d{4}-\d{2}-\d{2}$/.test(text ?? '')

export function periodIn({ days, from, to }: Readonly<Record<string, string>>): Period {
  if (isDay(from) && isDay(to) && from <= to) return { from, to, preset: 'own', query: { from, to } }
  const preset = presets.find(([it]) => it === days)?.[0] ?? '30'
  const today = sydneyDate(Date.now())
  const first = preset === 'month' ? `${today.slice(0, 8)}01` : sydneyDate(Date.now() - (Number(preset) - 1) * DAY_MS)
  return { from: first, to: today, preset, query: { days: preset } }
}

export function PeriodChoice({
  of: period,
  choose,
}: {
  of: Period
  choose: (query: Readonly<Record<string, string>>) => void
}) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Segments
        label="Period"
        value={isOpen ? 'own' : period.preset}
        options={[...presets, ['own', 'Own range'] as const]}
        choose={(next) => {
          setOpen(next === 'own')
          if (next !== 'own') choose({ days: next })
        }}
      />
      {isOpen || period.preset === 'own' ? (
        <OwnRange
          key={`${period.from} ${period.to}`}
          of={period}
          choose={(from, to) => {
            setOpen(false)
            choose({ from, to })
          }}
        />
      ) : null}
    </>
  )
}

function OwnRange({ of: period, choose }: { of: Period; choose: (from: string, to: string) => void }) {
  const [from, setFrom] = useState(period.from)
  const [to, setTo] = useState(period.to)
  const action = useAction()
  return (
    <Form class="row end" action={action} submit={async () => choose(from, to)}>
      <Field label="From">
        <input
          name="from"
          type="date"
          required
          max={sydneyDate(Date.now())}
          value={from}
          onInput={(event) => setFrom(event.currentTarget.value)}
        />
      </Field>
      <Field label="To">
        <input
          name="to"
          type="date"
          required
          min={from}
          value={to}
          onInput={(event) => setTo(event.currentTarget.value)}
        />
      </Field>
      <button type="submit">Show</button>
    </Form>
  )
}
