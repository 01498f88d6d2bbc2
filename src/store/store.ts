import type { AccountStore } from '../workspaces/account-store.ts'
import type { AlertStore } from '../alerts/alert-store.ts'
import type { BatchStore } from '../batches/batch-store.ts'
import type { StoredFileStore } from '../batches/file-store.ts'
import type { AuditStore } from '../operate/audit/audit-store.ts'
import type { AdjustmentNoteStore, InvoiceStore, LinkSecretStore } from '../billing/invoices/invoice-store.ts'
import type { EmailStore } from '../billing/invoices/emails/email-store.ts'
import type { PaymentStore } from '../billing/invoices/payments/payment-store.ts'
import type { KeyStore } from '../workspaces/keys/key-store.ts'
import type { LaneSettingsStore } from '../catalog/lane-settings-store.ts'
import type { LedgerStore } from '../ledger/ledger.ts'
import type { RefusalStore } from '../billing/refused-requests/refusal-store.ts'
import type { ReportStore } from '../billing/usage/report-store.ts'
import type { SessionStore } from '../workspaces/sessions/session-store.ts'
import type { ArrivalStore, UsageStore } from '../billing/usage/usage-store.ts'

/**
 * Everything that must outlive the process. A promise resolves only when its effect is durable. Several processes may
 * have the same store open; each write documents what it guarantees then.
 */
export interface Store
  extends
    AccountStore,
    AlertStore,
    KeyStore,
    LedgerStore,
    UsageStore,
    ReportStore,
    InvoiceStore,
    AdjustmentNoteStore,
    LinkSecretStore,
    PaymentStore,
    EmailStore,
    ArrivalStore,
    AuditStore,
    LaneSettingsStore,
    SessionStore,
    StoredFileStore,
    BatchStore,
    RefusalStore {
  /** False while nothing can be read or written. */
  isUp(): boolean
  close(): Promise<void>
}
