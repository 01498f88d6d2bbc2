import { Type, type Static } from 'typebox'
import type { EngineRun, EngineKind } from './model.ts'
import type { CheckedYaml } from '../shared/checked-yaml.ts'
import type { Path } from '../shared/json/schema-check.ts'

/** `run` of an engine: how Weir starts it. And the devices that such engines share. A part of file.ts. */

const memory = () =>
  Type.String({
    maxLength: 20,
    pattern: '^\\d{1,6}(\\.\\d{1,3})?(MiB|GiB)$',
    expected: 'a size such as 24GiB or 512MiB',
  })

/** By the names of devices. */
export const devicesSchema = Type.Unsafe<Readonly<Record<string, string>>>(
  Type.Object(
    {},
    {
      maxProperties: 64,
      propertyNames: { maxLength: 32 },
      additionalProperties: memory(),
    },
  ),
)

export const engineRunSchema = Type.Object(
  {
    command: Type.Array(Type.String({ minLength: 1, maxLength: 4096 }), {
      minItems: 1,
      maxItems: 256,
    }),
    env: Type.Optional(
      Type.Unsafe<Readonly<Record<string, string>>>(
        Type.Object(
          {},
          {
            maxProperties: 256,
            propertyNames: { maxLength: 128 },
            additionalProperties: Type.String({ maxLength: 4096 }),
          },
        ),
      ),
    ),
    port: Type.Integer({
      minimum: 1,
      maximum: 65_535,
    }),
    ready: Type.Optional(
      Type.String({
        pattern: '^/[!-~]*$',
        maxLength: 1000,
        expected: 'a path on the server that begins with "/", such as /health',
      }),
    ),
    start_timeout_ms: Type.Optional(
      Type.Integer({
        minimum: 1000,
        maximum: 7_200_000,
      }),
    ),
    stop_after_idle_ms: Type.Optional(
      Type.Integer({
        minimum: 1000,
        maximum: 2_592_000_000,
      }),
    ),
    device: Type.Optional(Type.String({ maxLength: 32 })),
    memory: Type.Optional(memory()),
    group: Type.Optional(
      Type.String({
        pattern: '^[a-z0-9][a-z0-9_-]{0,31}$',
        expected: 'a name such as large',
      }),
    ),
    pin: Type.Optional(Type.Boolean()),
    preload: Type.Optional(Type.Boolean()),
    sleep: Type.Optional(
      Type.Object(
        { memory: Type.Optional(memory()) },
        {
          additionalProperties: false,
        },
      ),
    ),
  },
  { additionalProperties: false },
)

export type Devices = Static<typeof devicesSchema>

/** Reports mistakes to `yaml`. */
export function toEngineRun(
  run: Static<typeof engineRunSchema>,
  { kind, devices }: { readonly kind: EngineKind; readonly devices: Devices | undefined },
  path: Path,
  yaml: CheckedYaml<unknown>,
): EngineRun {
  // null counts as absent.
  const budget = run.device === undefined ? undefined : (devices?.[run.device] ?? undefined)
  const bytes = run.memory ? bytesOf(run.memory) : undefined
  if (kind === 'embedded') yaml.mistake(path, 'is not allowed for kind embedded: Weir runs that engine itself')
  if (run.device !== undefined && budget === undefined) {
    yaml.mistake(
      [...path, 'device'],
      `"${run.device}" is not one of devices; add it there with its memory, such as ${run.device}: 24GiB`,
    )
  }
  if (run.device === undefined && bytes !== undefined) {
    yaml.mistake([...path, 'memory'], 'is for engines with device; give device as well, or leave memory out')
  }
  if (budget !== undefined && bytes !== undefined && bytes > bytesOf(budget)) {
    yaml.mistake([...path, 'memory'], `is more than the device ${run.device} has (${budget})`)
  }
  if (run.sleep && kind !== 'vllm') yaml.mistake([...path, 'sleep'], 'is only for kind vllm; leave it out')
  if (bytesOf(run.sleep?.memory ?? '0MiB') > (bytes ?? bytesOf(budget ?? '0MiB'))) {
    yaml.mistake([...path, 'sleep', 'memory'], 'must be at most memory, or what the device has')
  }
  return {
    command: run.command,
    env: Object.fromEntries(Object.entries(run.env ?? {}).filter(([, value]) => (value as string | null) !== null)),
    port: run.port,
    readyPath: run.ready,
    startTimeoutMs: run.start_timeout_ms ?? 600_000,
    stopAfterIdleMs: run.stop_after_idle_ms,
    device: run.device === undefined || budget === undefined ? undefined : { name: run.device, bytes: bytesOf(budget) },
    bytes,
    group: run.group,
    isPinned: run.pin ?? false,
    isPreloaded: run.preload ?? false,
    sleep: run.sleep && { bytes: bytesOf(run.sleep.memory ?? '0MiB') },
  }
}

/** Two engines with one port could never run at the same time, and each would be taken for the other. */
export class TakenPorts {
  readonly #lanes = new Map<number, string>()

  take(port: number, lane: string, path: Path, yaml: CheckedYaml<unknown>): void {
    const other = this.#lanes.get(port)
    if (other !== undefined) yaml.mistake([...path, 'port'], `${port} is already the port of ${other}; choose another`)
    else this.#lanes.set(port, lane)
  }
}

function bytesOf(size: string): number {
  return Math.round(Number.parseFloat(size) * (size.endsWith('GiB') ? 2 ** 30 : 2 ** 20))
}
