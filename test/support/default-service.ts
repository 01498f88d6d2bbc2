import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startService, type Service } from '../../src/compose.ts'
import { loadConfig } from '../../src/config.ts'
import { OPERATOR_TOKEN } from './weir.ts'

/** Nothing listens there, so that nothing can be downloaded. */
const NOWHERE = 'http://127.0.0.1:1/'

/** Of the default catalog: one is fetched by a first start, the other one only on request. */
export const FETCHED_MODEL = 'qwen/qwen2.5-coder-0.5b-instruct'
export const PULLED_MODEL = 'qwen/qwen3-8b'

/** The service as it starts without a configuration, on a machine that reaches no registry. */
export interface DefaultService {
  readonly service: Service
  readonly folder: string
  stop(): Promise<void>
}

/** `folder`: the data directory, of an earlier service or empty. */
export async function startDefaultService(
  variables: NodeJS.ProcessEnv = {},
  folder: string = mkdtempSync(join(tmpdir(), 'weir-default-')),
): Promise<DefaultService> {
  const environment = {
    PATH: process.env['PATH'],
    HOME: folder,
    WEIR_DATA_DIR: folder,
    WEIR_PORT: '0',
    WEIR_ADMIN_PORT: '0',
    WEIR_OPERATOR_TOKEN: OPERATOR_TOKEN,
    npm_config_registry: NOWHERE,
    PIP_INDEX_URL: NOWHERE,
    HF_ENDPOINT: NOWHERE,
    ...variables,
  }
  const silent = { write: () => {}, flush: async () => {} }
  const service = await startService(loadConfig({}, environment), { log: silent })
  return {
    service,
    folder,
    async stop() {
      await service.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
