import type { EngineKind } from '../../catalog/model.ts'

/** The server of llama-cpp-python refuses every id that is not a UUID. */
export function takesRequestIds(kind: EngineKind): boolean {
  return kind !== 'llamacpp_python'
}
