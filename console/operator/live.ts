import { liveStream } from '../shared/live.ts'
import type { Sample } from './api.ts'

/** All queues, followed live. */
export const live = liveStream<Sample>('/console/api/live')

export const lanePath = (lane: string): string => `/console/queues/${lane.split('/').map(encodeURIComponent).join('/')}`
