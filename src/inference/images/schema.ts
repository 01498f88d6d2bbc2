import { Type, type Static } from 'typebox'
import { exampleCreated, idText, modelParameter } from '../request/shared-schema.ts'

/** The wire shapes of /images/generations. */

const PROMPT_LENGTH = 32_000

export const imagesRequestSchema = Type.Object({
  model: modelParameter,
  prompt: Type.String({ minLength: 1, maxLength: PROMPT_LENGTH }),
  n: Type.Optional(Type.Integer({ minimum: 1, maximum: 10, description: 'How many images to make. 1 by default.' })),
  size: Type.Optional(
    Type.String({
      maxLength: 9,
      pattern: '^(auto|[1-9][0-9]{1,3}x[1-9][0-9]{1,3})$',
      expected: 'auto, or width x height in pixels, such as 1024x1024',
    }),
  ),
  response_format: Type.Optional(
    Type.Enum(['b64_json', 'url'], { description: 'url works only if the operator has set up file storage.' }),
  ),
  quality: Type.Optional(Type.Enum(['auto', 'standard', 'hd', 'low', 'medium', 'high'])),
  style: Type.Optional(Type.Enum(['vivid', 'natural'])),
  background: Type.Optional(Type.Enum(['auto', 'transparent', 'opaque'])),
  output_format: Type.Optional(Type.Enum(['png', 'jpeg', 'webp'])),
  // The seed is serialized again for the engine, so it plus the number of images must be an exact integer.
  seed: Type.Optional(Type.Integer({ minimum: -(2 ** 52), maximum: 2 ** 52 })),
  negative_prompt: Type.Optional(Type.String({ maxLength: PROMPT_LENGTH })),
  steps: Type.Optional(Type.Integer({ minimum: 1, maximum: 500 })),
  stream: Type.Optional(Type.Boolean({ description: 'Images cannot be streamed; only false is allowed.' })),
  user: Type.Optional(idText),
})

export type ImagesRequest = Static<typeof imagesRequestSchema>

export const imagesResponseSchema = Type.Object({
  created: Type.Integer({ description: 'Unix seconds.', example: exampleCreated }),
  data: Type.Array(
    Type.Object({
      b64_json: Type.Optional(Type.String({ example: 'iVBORw0KGgoAAAANSUhEUg==' })),
      url: Type.Optional(Type.String({ description: 'Works for a limited time, without a key.' })),
      revised_prompt: Type.Optional(Type.String()),
    }),
  ),
})

export const imagesExample = {
  request: { model: 'weir/starter-image', prompt: 'A weir in the morning light', size: '512x512' },
}
