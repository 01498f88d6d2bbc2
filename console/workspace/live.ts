import { liveStream } from '../shared/live.ts'
import type { Answer } from './api.ts'
import { session } from './session.ts'

/** The load of the models, followed live. */
export type LiveSample = Answer<'live'>
export type Load = LiveSample['models'][number]

export const live = liveStream<LiveSample>('/console/api/live', () => session.value?.workspace ?? '')
