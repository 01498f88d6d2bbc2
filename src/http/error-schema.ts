import Type from 'typebox'
import { errorTable } from '../core/errors.ts'

/** The body of every error. */
export const errorSchema = Type.Object({
  error: Type.Object({
    message: Type.String(),
    type: Type.Enum([...new Set(Object.values(errorTable).map(({ type }) => type))]),
    param: Type.Union([Type.String(), Type.Null()]),
    code: Type.Enum(Object.keys(errorTable)),
  }),
})
