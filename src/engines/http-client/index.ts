/** The client's interface. README.md describes it. */
export { openClient, type Client, type Sending } from './client.ts'
export { deadlines, type Deadlines } from './deadlines.ts'
export { BrokenMessage, type AnswerHeaders } from './header-lines.ts'
export { headerLines } from './request-head.ts'
export {
  AnswerStalled,
  RequestAborted,
  type AnswerHandler,
  type ClientRequest,
  type RequestBody,
  type ServerPlace,
} from './request.ts'
