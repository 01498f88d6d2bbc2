import { operations as consoleOperations, type Operations as ConsoleOperations } from '../generated/console-api.ts'
import { operations as publicOperations, type Operations as PublicOperations } from '../generated/public-api.ts'
import { client } from '../shared/client.ts'

type Operations = PublicOperations & ConsoleOperations

/** The public API and the console's own, with the session of this browser. */
export const api = client<Operations>({ ...publicOperations, ...consoleOperations })

export type Answer<Id extends keyof Operations> = Operations[Id]['answer']
export type Body<Id extends keyof Operations> = Operations[Id]['body']
export type Model = Answer<'models'>['data'][number]
export type ModelDetail = Answer<'modelsSlug'>
export type Session = Answer<'getSession'>
