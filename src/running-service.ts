import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { request } from 'undici'
import { isServiceRunning } from './store/sqlite/service-lock.ts'

/**
 * How commands and the service that runs on the same data directory find each other: the service leaves
 * a note there, and a command that changed something asks it to look again before the command ends. So a
 * key that was revoked is refused from the moment `weir keys revoke` returns.
 */
export interface ServiceNote {
  readonly url: string
  readonly adminUrl: string
  readonly operatorToken: string
  readonly pid: number
}

const noteIn = (dataDir: string): string => join(dataDir, 'service.json')

export function publishService(dataDir: string, note: ServiceNote): void {
  writeFileSync(noteIn(dataDir), JSON.stringify(note), { mode: 0o600 })
}

export function withdrawService(dataDir: string): void {
  rmSync(noteIn(dataDir), { force: true })
}

/**
 * The note of the service that runs on a data directory. One that was killed leaves its own behind, and whoever
 * listens at its address by now must not get the operator's token.
 */
export function findService(dataDir: string): ServiceNote | undefined {
  if (!isServiceRunning(dataDir)) return undefined
  try {
    return JSON.parse(readFileSync(noteIn(dataDir), 'utf8')) as ServiceNote
  } catch {
    return undefined
  }
}

/** Resolves when a running service has seen the change, or when none is running. */
export async function refreshService(dataDir: string): Promise<void> {
  const note = findService(dataDir)
  if (!note) return
  let status: number
  try {
    const response = await request(`${note.adminUrl}/admin/v1/accounts/reload`, {
      method: 'POST',
      headers: { authorization: `Bearer ${note.operatorToken}` },
      headersTimeout: 10_000,
    })
    status = response.statusCode
    await response.body.dump()
  } catch {
    // It ended meanwhile: there is nobody to tell.
    return
  }
  if (status !== 200) throw new Error(`the running service did not take the change (status ${status}); restart it`)
}
