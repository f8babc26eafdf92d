import { HeedError } from '../../../base/errors.ts'
import { checkContentEncoding } from '../../request/exchange.ts'
import { route, type Route } from '../../route.ts'
import { webhookAnswer } from '../../schema/response-schemas.ts'

/** The largest webhook. GitHub's may have 25 MB, and have a few kB. */
const maxBytes = 1024 * 1024

export const webhooks: readonly Route[] = [
  route({
    method: 'POST', path: '/webhooks/:sourceId', summary: 'A webhook of a source, authenticated by its signature; 200 means stored',
    response: 'json', responseSchema: webhookAnswer, anonymous: true,
    async handle({ heed, params: { sourceId = '' }, request }) {
      const source = heed.sources.get(sourceId)
      if (!source?.handleWebhook) throw new HeedError('not_found', 'There is no such source.')
      checkContentEncoding(request)
      const { status, body = {} } = await source.handleWebhook({
        headers: request.fetchRequest.headers,
        body: await request.text(maxBytes),
      })
      return Response.json(body, { status })
    },
  }),
  route({
    method: 'POST', path: '/channels/:channelId', summary: 'A message of a channel, authenticated by its signature; 2xx means stored',
    response: 'json', responseSchema: webhookAnswer, anonymous: true,
    async handle({ heed, params: { channelId = '' }, request }) {
      const channel = heed.channels.get(channelId)
      if (!channel) throw new HeedError('not_found', 'There is no such channel.')
      checkContentEncoding(request)
      const { status, body = '{}', headers = {} } = await channel.receive({
        headers: request.fetchRequest.headers,
        body: await request.text(maxBytes),
      })
      return new Response(body, { status, headers: { 'content-type': 'application/json', ...headers } })
    },
  }),
]
