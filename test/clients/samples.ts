import type { ScriptedEngine, ToolCall } from '../support/scripted-engine.ts'

/** A model that calls a weather tool and then talks about its result. */
export const weatherCall: ToolCall = { id: 'call_1', name: 'get_weather', arguments: ['{"ci', 'ty":"Hob', 'art"}'] }

export const weatherAgent: ScriptedEngine['script'] = ({ body }) => {
  const last = (body['messages'] as { role: string; content: string }[]).at(-1)
  return last?.role === 'tool' ? { tokens: ['It is ', last.content, '.'] } : { toolCalls: [weatherCall] }
}

/** A PNG of one pixel. */
export const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
