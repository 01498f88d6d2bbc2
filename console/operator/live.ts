import { liveStream } from '../shared/live.ts'
import type { Sample } from './api.ts'

/** All queues, followed live. */
export const live = liveStream<Sample>('/console/api/live')
