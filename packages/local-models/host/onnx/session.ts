import { InferenceSession, Tensor } from 'onnxruntime-node'

export type OpenSession = (path: string) => Promise<InferenceSession>

export function openSession(threads: number): OpenSession {
  return (path) =>
    InferenceSession.create(path, {
      intraOpNumThreads: threads,
      interOpNumThreads: 1,
      executionProviders: ['cpu'],
      // Without this, eight-bit products overflow on older x64 processors (those without VNNI).
      extra: { session: { x64quantprecision: '1' } },
    })
}

export function int64(values: readonly number[], dimensions: readonly number[]): Tensor {
  return new Tensor('int64', BigInt64Array.from(values, BigInt), dimensions)
}

export function float32(values: Float32Array, dimensions: readonly number[]): Tensor {
  return new Tensor('float32', values, dimensions)
}

export function scalar(value: number): Tensor {
  return float32(Float32Array.of(value), [1])
}

export async function run(
  session: InferenceSession,
  inputs: Readonly<Record<string, Tensor>>,
  signal: AbortSignal,
  outputs: readonly string[] = session.outputNames,
): Promise<Readonly<Record<string, Tensor>>> {
  signal.throwIfAborted()
  return session.run(inputs, outputs)
}

export function output(outputs: Readonly<Record<string, Tensor>>, name: string): Tensor {
  const tensor = outputs[name]
  if (!tensor) throw new Error(`the graph has no output '${name}'`)
  return tensor
}

export function floats(tensor: Tensor): Float32Array {
  return tensor.data as Float32Array
}
