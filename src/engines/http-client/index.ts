/** The client's interface. README.md describes it. */
export { openClient, type Client, type Sending } from './client.ts'
export { deadlines, type Deadlines } from './deadlines.ts'
export { BrokenMessage, headerLines, type AnswerHeaders } from './message-head.ts'
export {
  AnswerStalled,
  RequestAborted,
  type AnswerHandler,
  type ClientRequest,
  type RequestBody,
  type ServerPlace,
} from './request.ts'
