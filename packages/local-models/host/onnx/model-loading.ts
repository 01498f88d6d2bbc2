import type { ModelSettings } from '../../contract.ts'
import type { OpenSession } from './session.ts'

/** What every ONNX loader gets: where the files are and how to open them. */
export interface OnnxLoading {
  readonly open: OpenSession
  path(role: string): string
  readonly memoryBytes: number
  readonly contextTokens: number
  readonly settings: ModelSettings
}
