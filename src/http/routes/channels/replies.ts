import { omitUndefined } from '../../request/fields.ts'
import { resolveResource } from '../../auth/principal.ts'
import { route, type Route } from '../../route.ts'
import * as responses from '../../schema/response-schemas.ts'
import { id, limit, object } from '../../schema/schemas.ts'
import { replyStates, type ReplyState } from '../../../watch/replies/machine.ts'

interface Replied {
  resourceId?: string
  channelId?: string
  threadId?: string
  state?: ReplyState
  limit?: number
  after?: number
}

const owned = { resourceId: id }

/** The replies of channels in mode `message`. */
export const replies: readonly Route[] = [
  route<never, Replied>({
    method: 'GET', path: '/replies', summary: 'Replies of channels, in the order of their messages', response: 'json', read: true,
    responseSchema: responses.replyPage,
    query: object({ ...owned, channelId: id, threadId: id, state: { enum: replyStates }, limit, after: { type: 'integer', minimum: 0 } }),
    handle: ({ heed, principal, query: { resourceId, ...rest } }) =>
      heed.channels.listReplies({ ...rest, ...omitUndefined({ resourceId: resolveResource(principal, resourceId) }) }),
  }),
  route<never, { resourceId?: string }>({
    method: 'POST', path: '/replies/:replyId/retry', summary: 'Sends a dead reply again; another is returned as it is', response: 'json',
    responseSchema: responses.reply,
    query: object(owned),
    handle: ({ heed, principal, params: { replyId = '' }, query: { resourceId } }) =>
      heed.channels.retryReply({ id: replyId, ...omitUndefined({ resourceId: resolveResource(principal, resourceId) }) }),
  }),
]
