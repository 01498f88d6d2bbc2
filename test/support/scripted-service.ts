import type { TestContext } from 'node:test'
import { listenForCommands, type ServiceCommands } from '../../src/operate/command-socket.ts'
import { publishService, withdrawService } from '../../src/operate/running-service.ts'
import { takeServiceLock } from '../../src/store/sqlite/service-lock.ts'

/** A service that runs on the directory, as far as commands can see. It does what the test says. */
export async function scriptedService(
  t: TestContext,
  dataDir: string,
  commands: Partial<ServiceCommands>,
  url = 'http://127.0.0.1:9',
): Promise<{ stop(): Promise<void> }> {
  const lock = takeServiceLock(dataDir)
  const { socket, close } = await listenForCommands(dataDir, {
    reloads: { accounts: async () => [], catalog: async () => ({ models: 0, unreached: [], needsRestart: [] }) },
    contradictedCounts: () => [],
    cacheUse: () => [],
    metrics: async () => [],
    replicas: { list: async () => ({ coordination: 'alone', data: [] }), drain: async () => {} },
    engines: { list: () => [], order: async () => {} },
    reconciled() {},
    settled: async () => {},
    settings: () => ({ file: null, settings: [], pending: [], problem: null }),
    consoleLink: async () => '',
    removeModel: async () => ({ removed: [], alsoGone: [], freedBytes: 0 }),
    lendKey: () => ({ key: '', end() {} }),
    ...commands,
  })
  publishService(dataDir, { url, adminUrl: url, socket, pid: process.pid })
  let stopped: Promise<void> | undefined
  const stop = (): Promise<void> =>
    (stopped ??= close().then(() => {
      withdrawService(dataDir)
      lock.close()
    }))
  t.after(stop)
  return { stop }
}
