import { setTimeout as sleep } from 'node:timers/promises'
import type { Batch } from '../batches/batch-store.ts'
import { openBatches, type Batches } from '../batches/batches.ts'
import type { BatchFiles } from '../batches/files.ts'
import { resultWriter } from '../batches/result-writer.ts'
import type { PriceBook } from '../billing/prices/price-book.ts'
import type { Bookkeeping } from '../bookkeeping.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { ChangeFeed } from '../cluster/changes/change-feed.ts'
import { wholeUsage } from '../inference/metering/usage-bounds.ts'
import type { Pipeline } from '../inference/pipeline/pipeline.ts'
import type { remoteImages } from '../inference/request/remote-image.ts'
import { batchLines } from '../inference/routes/batch-lines.ts'
import type { Draining } from '../operate/draining.ts'
import type { FileStore } from '../server/files/files.ts'
import type { Spool } from '../server/uploads/uploads.ts'
import { batchesFailed } from '../service-log.ts'
import type { ByteBudget } from '../shared/byte-budget.ts'
import type { Accounts } from '../workspaces/accounts.ts'
import type { Caller } from '../workspaces/workspace.ts'
import type { Start } from './start.ts'

/** Opens what runs batches. A part of compose.ts. */

interface BatchParts extends Pick<Bookkeeping, 'store' | 'readStore' | 'journal'> {
  readonly accounts: Accounts
  readonly changes: ChangeFeed
  readonly draining: Draining
  readonly catalog: Catalog
  readonly prices: PriceBook
  readonly pipeline: Pipeline
  readonly memory: ByteBudget
  readonly images: ReturnType<typeof remoteImages>
  readonly files: FileStore | undefined
  readonly spool: Spool
  readonly batchFiles: BatchFiles
}

export function openBatchRunner({ config, clock, opened, telemetry, settings }: Start, parts: BatchParts): Batches {
  const { store, readStore, journal, accounts, changes, draining, images, files, catalog, pipeline, memory } = parts
  const endpoints = batchLines({
    catalog,
    pipeline,
    files,
    fetchImages: images.fetchImages,
    imageLimits: config.imageLimits,
    changingLines: config.changingLines,
    limits: settings,
    priceBatchLines: parts.prices.priceBatchLines,
  })
  const batches = openBatches({
    ...config.batches,
    store,
    reader: readStore,
    files: parts.batchFiles,
    spool: parts.spool,
    clock,
    changes,
    endpoints,
    writer: resultWriter(store, clock),
    memory,
    owner: journal?.owner ?? '',
    isAlone: journal === undefined,
    running: new Set(),
    pipeline,
    usageOf: (job, answer) => wholeUsage(job, answer).usage,
    sleep: (ms, signal) => sleep(ms, undefined, { signal }),
    failed: batchesFailed(telemetry),
    maxLineBytes: config.maxBodyBytes,
    callerOf: (batch) => callerOfBatch(accounts, batch),
    rowsOf: readStore.usageRows,
    isDelivered: (owner) => isDelivered(journal, owner),
    isDraining: draining.isOn,
    leftMs: draining.leftMs,
  })
  return opened.adopt(batches, (it) => it.close())
}

/** The caller that created a batch; undefined if its key or its workspace is gone. */
export async function callerOfBatch(
  accounts: Pick<Accounts, 'key' | 'callerOf' | 'workspaceById'>,
  { keyId, workspaceId }: Pick<Batch, 'keyId' | 'workspaceId'>,
): Promise<Caller | undefined> {
  const key = await accounts.key(keyId)
  if (key) return accounts.callerOf(key.hash)
  // A person or a link that signed in to the console, or a lent key.
  const workspace = accounts.workspaceById(workspaceId)
  return workspace && { workspace, keyId }
}

/** Whether all rows of this owner are in the ledger. Without a journal of its own, no other process writes to the store. */
export function isDelivered(journal: Bookkeeping['journal'], owner: string): boolean {
  return !journal || owner === journal.owner || owner === journal.predecessor
}
