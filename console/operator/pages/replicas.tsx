import { useState } from 'preact/hooks'
import { Confirm } from '../../shared/action.tsx'
import { useData } from '../../shared/data.ts'
import { reloadKey } from '../../shared/live.ts'
import { bytesText } from '../../../src/shared/bytes-text.ts'
import { count, milliseconds } from '../../shared/format.ts'
import { Moment, PageHead, Ready, Stale, State, Table } from '../../shared/parts.tsx'
import { api, type Answer } from '../api.ts'
import { may } from '../session.tsx'
import { live } from '../live.ts'

/** The processes that make up the service, and how to drain one of them. */

type Replica = Answer<'listReplicas'>['data'][number]

const agreement = {
  alone: 'This service works alone. With coordination in weir.yaml, several services share their lanes.',
  joined: 'The replicas share their lanes through Redis.',
  apart: 'Redis is unreachable. Each replica serves within its allotment, and only this one is listed.',
  stopped: 'Redis has been unreachable for so long that this replica admits no new requests.',
} as const

export function ReplicasPage() {
  const stream = live.use()
  const loaded = useData((signal) => api('listReplicas', { signal }), [reloadKey(stream)])
  const [leaving, setLeaving] = useState<Replica>()
  return (
    <>
      <PageHead title="Replicas" about="Every process that serves, as it was a few seconds ago." />
      <Stale is={stream.isStale} />
      <Ready of={loaded}>
        {({ data, coordination, answered_by: here }) => (
          <>
            <p class="soft">{agreement[coordination]}</p>
            <Table
              caption="Replicas"
              rows={data}
              keyOf={({ name }) => name}
              columns={[
                {
                  title: 'Replica',
                  cell: ({ name }) => (
                    <>
                      <code class="small">{name}</code>{' '}
                      {name === here ? <span class="chip">answers this page</span> : null}
                    </>
                  ),
                },
                {
                  title: 'State',
                  cell: ({ draining }) =>
                    draining ? <State is="warn">Draining</State> : <State is="good">Serving</State>,
                },
                { title: 'Version', cell: ({ version }) => version },
                { title: 'Since', cell: ({ started_at: at }) => <Moment at={at} /> },
                { title: 'In flight', isNumber: true, cell: (it) => count(it.in_flight_requests) },
                { title: 'Waiting', isNumber: true, cell: (it) => count(it.queue_depth) },
                {
                  title: 'Journal',
                  isNumber: true,
                  cell: (it) => `${bytesText(it.journal_bytes)}, ${milliseconds(it.journal_lag_ms)}`,
                },
                {
                  title: 'Action',
                  isAction: true,
                  cell: (replica) =>
                    replica.draining || !may('drainReplica') ? null : (
                      <button
                        type="button"
                        class="plain"
                        aria-label={`Drain ${replica.name}`}
                        onClick={() => setLeaving(replica)}
                      >
                        Drain
                      </button>
                    ),
                },
              ]}
            />
          </>
        )}
      </Ready>
      {leaving === undefined ? null : (
        <Confirm
          title={`Drain ${leaving.name}?`}
          verb="Drain"
          act={async () => {
            await api('drainReplica', { path: { name: leaving.name } })
            loaded.reload()
          }}
          close={() => setLeaving(undefined)}
        >
          <p>
            It takes no new work, refuses waiting requests, finishes running ones, and exits. It does not start again,
            unless something restarts it.
          </p>
        </Confirm>
      )}
    </>
  )
}
