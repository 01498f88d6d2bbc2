import type { AlertStore, ClaimedDelivery, EventDelivery } from '../alert-store.ts'
import type { EventType } from '../event-table.ts'
import { deliveryId, type AlertEvent, type NamedEvent } from '../events.ts'
import {
  command,
  commandForEach,
  query,
  readRows,
  writeOne,
  type Database,
  type Row,
  type Statement,
  type Values,
} from '../../store/database.ts'

const EVENT_COLUMNS = 'id, type, occurred_at, workspace_id, key_id, subject, data'

const eventValues = (it: AlertEvent): Values => [
  it.id,
  it.type,
  it.occurredAt,
  it.workspaceId,
  it.keyId,
  it.subject,
  it.data,
]

/**
 * Adds an event of a workspace in the transaction of its cause. `from` names the row that proves that the cause had an effect,
 * such as `api_keys WHERE id = ?`, and that has the workspace.
 */
export function addEvent(event: Omit<AlertEvent, 'workspaceId'>, from: string, ...values: Values): Statement {
  return command(
    `INSERT INTO alert_events (${EVENT_COLUMNS}) SELECT ?, ?, ?, workspace_id, ?, ?, ? FROM ${from} ON CONFLICT DO NOTHING`,
    event.id,
    event.type,
    event.occurredAt,
    event.keyId,
    event.subject,
    event.data,
    ...values,
  )
}

const ADD_CHANGE = `INSERT INTO alert_events (${EVENT_COLUMNS}) SELECT ?, ?, ?, ?, ?, ?, ? WHERE ? <> coalesce(
    (SELECT type FROM alert_events WHERE subject = ? ORDER BY occurred_at DESC, id LIMIT 1), ?
  ) ON CONFLICT DO NOTHING`

const TO_DISPATCH = `SELECT alert_events.id AS id, type, occurred_at, alert_events.workspace_id AS workspace_id, key_id, subject,
    data, workspaces.name AS workspace, api_keys.name AS key_name, api_keys.ending AS key_ending
  FROM alert_events
  LEFT JOIN workspaces ON workspaces.id = alert_events.workspace_id
  LEFT JOIN api_keys ON api_keys.id = alert_events.key_id
  WHERE body IS NULL ORDER BY occurred_at, alert_events.id LIMIT ?`

/** PostgreSQL checks the outer condition again after waiting for another process that claims the same row. */
const CLAIM = `UPDATE alert_deliveries SET attempts = attempts + 1, lease_until = ?
  WHERE state = 'queued' AND lease_until <= ? AND id = (
    SELECT id FROM alert_deliveries WHERE state = 'queued' AND endpoint = ? AND next_attempt_at <= ? AND lease_until <= ?
      AND NOT EXISTS (SELECT 1 FROM disabled_endpoints WHERE name = ? AND url = ?)
    ORDER BY next_attempt_at, id LIMIT 1
  ) RETURNING id, event_id, attempts, (SELECT body FROM alert_events WHERE alert_events.id = event_id) AS body`

const DELIVERIES = `SELECT alert_deliveries.id AS id, event_id, type, endpoint, state, attempts, created_at, next_attempt_at,
    sent_at, last_error, body
  FROM alert_deliveries JOIN alert_events ON alert_events.id = event_id`

/** PostgreSQL checks the condition again after waiting for another process that takes the lease. */
const LEASE_WATCH = `INSERT INTO job_leases (name, owner, lease_until) VALUES ('alerts watch', ?, ?)
  ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, lease_until = excluded.lease_until
  WHERE job_leases.owner = excluded.owner OR job_leases.lease_until <= ? RETURNING name`

export function alertQueries(database: Database): AlertStore {
  const { dialect } = database
  return {
    addEvents: async (events) => {
      const adding = commandForEach(
        `INSERT INTO alert_events (${EVENT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
        events.map(eventValues),
      )
      await database.transact({ access: 'write', locks: [], statements: [adding] })
    },
    addChange: async (event, usual) => {
      const adding = command(ADD_CHANGE, ...eventValues(event), event.type, event.subject, usual)
      // The lock keeps other replicas away between reading the last event and adding one.
      await database.transact({ access: 'write', locks: ['alerts'], statements: [adding] })
    },
    eventsToDispatch: async (limit) => (await readRows(database, TO_DISPATCH, limit)).map(toNamedEvent),
    dispatchEvents: async (events, now) => {
      const dispatching = commandForEach(
        'UPDATE alert_events SET body = ? WHERE id = ? AND body IS NULL',
        events.map(({ id, body }) => [body, id]),
      )
      const delivering = commandForEach(
        `INSERT INTO alert_deliveries (id, event_id, endpoint, state, attempts, created_at, next_attempt_at, lease_until)
         VALUES (?, ?, ?, 'queued', 0, ?, ?, 0) ON CONFLICT DO NOTHING`,
        events.flatMap(({ id, endpoints }) =>
          endpoints.map((endpoint) => [deliveryId(id, endpoint), id, endpoint, now, now]),
        ),
      )
      await database.transact({ access: 'write', locks: [], statements: [dispatching, delivering] })
    },
    async claimDelivery({ name, url }, now, leaseUntil) {
      const claiming = query(CLAIM, leaseUntil, now, name, now, now, name, url)
      const [claimed] = await database.transact({ access: 'write', locks: [], statements: [claiming] })
      return claimed?.[0] && toClaimed(claimed[0], leaseUntil)
    },
    finishDelivery: ({ id, leaseUntil }, { state, nextAttemptAt, sentAt, lastError }) =>
      writeOne(
        database,
        `UPDATE alert_deliveries SET state = ?, next_attempt_at = ?, sent_at = ?, last_error = ?, lease_until = 0
         WHERE id = ? AND lease_until = ?`,
        state,
        nextAttemptAt,
        sentAt,
        lastError,
        id,
        leaseUntil,
      ),
    async deliveries({ state, type, endpoint, before, limit }) {
      const filters: readonly (readonly [string, Values])[] = [
        ...(state === undefined ? [] : [['state = ?', [state]] as const]),
        ...(type === undefined ? [] : [['type = ?', [type]] as const]),
        ...(endpoint === undefined ? [] : [['endpoint = ?', [endpoint]] as const]),
        ...(before ? [['(created_at, alert_deliveries.id) < (?, ?)', [before.createdAt, before.id]] as const] : []),
      ]
      const where = filters.length === 0 ? '' : `WHERE ${filters.map(([condition]) => condition).join(' AND ')}`
      const rows = await readRows(
        database,
        `${DELIVERIES} ${where} ORDER BY created_at DESC, alert_deliveries.id DESC LIMIT ?`,
        ...filters.flatMap(([, values]) => values),
        limit,
      )
      return rows.map(toDelivery)
    },
    async delivery(id) {
      const [row] = await readRows(database, `${DELIVERIES} WHERE alert_deliveries.id = ?`, id)
      return row && toDelivery(row)
    },
    async replayDelivery(id, now) {
      const replaying = query(
        `UPDATE alert_deliveries SET state = 'queued', attempts = 0, next_attempt_at = ?, sent_at = NULL, last_error = NULL
         WHERE id = ? AND lease_until <= ? RETURNING id`,
        now,
        id,
        now,
      )
      const [replayed] = await database.transact({ access: 'write', locks: [], statements: [replaying] })
      return replayed?.length === 1
    },
    disableEndpoint: ({ name, url }, now) =>
      writeOne(
        database,
        `INSERT INTO disabled_endpoints (name, url, disabled_at) VALUES (?, ?, ?)
         ON CONFLICT (name) DO UPDATE SET url = excluded.url, disabled_at = excluded.disabled_at`,
        name,
        url,
        now,
      ),
    enableEndpoint: (name) => writeOne(database, 'DELETE FROM disabled_endpoints WHERE name = ?', name),
    async disabledEndpoints() {
      const rows = await readRows(database, 'SELECT name, url, disabled_at FROM disabled_endpoints')
      return rows.map((row) => ({
        name: String(row['name']),
        url: String(row['url']),
        disabledAt: Number(row['disabled_at']),
      }))
    },
    async oldestUndelivered(endpoints) {
      const [row] = await readRows(
        database,
        `SELECT min(created_at) AS oldest FROM alert_deliveries
         WHERE state = 'queued' AND endpoint IN (${dialect.selectTexts('?')})`,
        JSON.stringify(endpoints),
      )
      const oldest = row?.['oldest'] ?? null
      return oldest === null ? undefined : Number(oldest)
    },
    async leaseWatch(owner, now, leaseUntil) {
      const leasing = query(LEASE_WATCH, owner, leaseUntil, now)
      const [leased] = await database.transact({ access: 'write', locks: [], statements: [leasing] })
      return leased?.length === 1
    },
    forgetEvents: async (before) => {
      const statements = [
        command(
          'DELETE FROM alert_deliveries WHERE event_id IN (SELECT id FROM alert_events WHERE occurred_at < ?)',
          before,
        ),
        command('DELETE FROM alert_events WHERE occurred_at < ?', before),
      ]
      await database.transact({ access: 'write', locks: [], statements })
    },
  }
}

const textOf = (row: Row, column: string): string | null => row[column] as string | null

function toNamedEvent(row: Row): NamedEvent {
  return {
    id: String(row['id']),
    type: String(row['type']) as EventType,
    occurredAt: Number(row['occurred_at']),
    workspaceId: textOf(row, 'workspace_id'),
    keyId: textOf(row, 'key_id'),
    subject: textOf(row, 'subject'),
    data: String(row['data']),
    workspace: textOf(row, 'workspace'),
    keyName: textOf(row, 'key_name'),
    keyEnding: textOf(row, 'key_ending'),
  }
}

function toClaimed(row: Row, leaseUntil: number): ClaimedDelivery {
  return {
    id: String(row['id']),
    eventId: String(row['event_id']),
    body: String(row['body']),
    attempts: Number(row['attempts']),
    leaseUntil,
  }
}

function toDelivery(row: Row): EventDelivery {
  return {
    id: String(row['id']),
    eventId: String(row['event_id']),
    type: String(row['type']) as EventType,
    endpoint: String(row['endpoint']),
    state: String(row['state']) as EventDelivery['state'],
    attempts: Number(row['attempts']),
    createdAt: Number(row['created_at']),
    nextAttemptAt: Number(row['next_attempt_at']),
    sentAt: row['sent_at'] === null ? null : Number(row['sent_at']),
    lastError: textOf(row, 'last_error'),
    body: String(row['body']),
  }
}
