import { checkNames, refused } from '../base/arguments.ts'
import { RequestContext } from '../run/request-context.ts'

/** For which request something is asked. */
export type ForRequest = RequestContext | { requestContext?: RequestContext }

/** What a value has to be, in words for whoever got it wrong; nothing when it is. */
type Check = (value: unknown) => string | undefined

const text: Check = (value) => (typeof value === 'string' && value !== '' ? undefined : 'a text that is not empty')
const texts: Check = (value) => (Array.isArray(value) && value.every((one) => text(one) === undefined) ? undefined : 'a list of ids')
const flag: Check = (value) => (typeof value === 'boolean' ? undefined : 'true or false')
const whole = (least: number): Check => (value) => (Number.isSafeInteger(value) && Number(value) >= least ? undefined : `a whole number of at least ${least}`)
const date: Check = (value) => (value instanceof Date && !Number.isNaN(value.getTime()) ? undefined : 'a Date')
const elsewhere: Check = () => undefined
const unless = (check: Check): Check => (value) => (value === undefined ? undefined : check(value))

const thread = { threadId: text, resourceId: unless(text) }
const run = { runId: text, toolCallId: unless(text), resourceId: unless(text) }
const abort = { ...thread, clearPendingSignals: unless(flag), expectedRunId: unless(text) }
const waiting = { id: unless(text), threadId: text, resourceId: unless(text), runId: unless(text), toolCallId: unless(text) }

/** What each method takes. */
const methods = {
  getLane: { ...thread, id: text },
  listLanes: { ...thread, after: unless(text), limit: unless(whole(1)) },
  listLaneHistory: { ...thread, id: text, before: unless(whole(0)), limit: unless(whole(1)) },
  subscribeToThread: { ...thread, after: unless(text), snapshot: unless(flag) },
  abortRun: abort,
  abortThreadStream: abort,
  activeRun: thread,
  listActiveThreads: { resourceId: unless(text), limit: unless(whole(1)) },
  listQueued: thread,
  cancelQueued: { ...thread, signalIds: texts },
  reorderQueued: { ...thread, signalIds: texts },
  explain: { ...thread, signalId: text },
  retryParked: { ...thread, runId: unless(text) },
  sendToolApproval: { ...waiting, approved: unless(flag), declineContext: unless(decline), resumeData: elsewhere },
  sendStreamResume: { ...waiting, resumeData: elsewhere },
  approveToolCall: run,
  declineToolCall: { ...run, reason: unless((value) => (typeof value === 'string' ? undefined : 'a text')) },
  resumeStream: run,
  listSuspendedRuns: {
    threadId: unless(text), resourceId: unless(text), fromDate: unless(date), toDate: unless(date), page: unless(whole(0)), perPage: unless(whole(0)), total: unless(flag),
  },
} satisfies Record<string, Record<string, Check>>

/** What a method was called with, refused by name where it is wrong. Nothing has happened then. */
export function given<Given extends object>(method: keyof typeof methods, of: Given): Given {
  const fields: Record<string, Check> = methods[method]
  checkNames(`${method}()`, of, Object.keys(fields))
  for (const [field, check] of Object.entries(fields)) {
    const wanted = check((of as Record<string, unknown>)[field])
    if (wanted !== undefined) throw refused(field, wanted)
  }
  return of
}

/** The context that is meant; an empty one where there is none. */
export function contextGiven(method: string, request: ForRequest = {}): RequestContext {
  if (isContext(request)) return request
  checkNames(method, request, ['requestContext'])
  const { requestContext = new RequestContext() } = request
  if (!isContext(requestContext)) throw refused('requestContext', 'a RequestContext: new RequestContext({ user: … })')
  return requestContext
}

/** The class may come from another copy of this package. */
function isContext(value: unknown): value is RequestContext {
  return typeof value === 'object' && value !== null && 'get' in value && typeof value.get === 'function' && 'all' in value
}

function decline(value: unknown): string | undefined {
  const said = typeof value === 'object' && value !== null && Object.entries(value).every(([name, words]) => (name === 'reason' || name === 'message') && (words === undefined || typeof words === 'string'))
  return said ? undefined : 'an object with a reason'
}
