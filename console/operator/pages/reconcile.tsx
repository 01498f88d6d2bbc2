import { useState } from 'preact/hooks'
import { Problem, useAction } from '../../shared/action.tsx'
import { count, exactPicoAud } from '../../shared/format.ts'
import { checklistIcon } from '../../shared/icons.ts'
import { Empty, Figures, PageHead, State, Table } from '../../shared/parts.tsx'
import { api, type Answer } from '../api.ts'

/** Recomputes the ledger and lists what does not match. */
export function ReconcilePage() {
  const [result, setResult] = useState<Answer<'reconcile'>>()
  const action = useAction()
  const reconcile = async (): Promise<void> => setResult(await api('reconcile'))
  return (
    <>
      <PageHead title="Reconcile" about="Recomputes every amount, sum and invoice from the rows of the ledger.">
        <button type="button" class="primary" disabled={action.isRunning} onClick={() => void action.run(reconcile)}>
          {action.isRunning ? 'Working …' : 'Reconcile now'}
        </button>
      </PageHead>
      <Problem of={action} />
      <div class="stack" aria-live="polite">
        {result === undefined ? (
          <Empty icon={checklistIcon} title="Nothing was compared yet">
            “Reconcile now” shows what does not add up. With many millions of rows it takes a while. It delays no
            requests.
            <code>npx weir reconcile</code>
          </Empty>
        ) : (
          <>
            <State is={result.fits ? 'good' : 'bad'}>
              {result.fits ? 'Everything adds up' : `${count(result.problems.length)} problems; the first 50 are below`}
            </State>
            <Figures
              of={[
                ['Rows', count(result.rows)],
                ['Workspaces', count(result.workspaces)],
                ['Invoices', count(result.invoices)],
                ['Sum of all rows', exactPicoAud(result.amount_pico_aud)],
              ]}
            />
            {result.problems.length === 0 ? null : (
              <Table
                caption="Problems"
                rows={result.problems.slice(0, 50)}
                keyOf={({ subject, check }) => `${check} ${subject}`}
                columns={[
                  { title: 'Subject', cell: ({ subject }) => subject },
                  { title: 'Check', cell: ({ check }) => check },
                  { title: 'Workspace', cell: ({ workspace }) => workspace ?? '–' },
                  { title: 'What is wrong', cell: ({ message }) => message },
                ]}
              />
            )}
          </>
        )}
      </div>
    </>
  )
}
