import { HeedError } from '../../base/errors.ts'
import { checkEncoding } from '../request/read-body.ts'
import { route, type Route } from '../route.ts'

/** The largest webhook. Those of GitHub end at 25 MB, and are a few kB. */
const maxBytes = 1024 * 1024

export const webhooks: readonly Route[] = [
  route({
    method: 'POST', path: '/webhooks/:sourceId', summary: 'What a source tells. Its signature says who asks; 200 means stored', answer: 'json', open: true,
    async handle({ heed, params: { sourceId = '' }, asked }) {
      const source = heed.sources.get(sourceId)
      if (!source?.handleWebhook) throw new HeedError('not_found', 'There is no such source.')
      checkEncoding(asked)
      const { status, body = {} } = await source.handleWebhook({ headers: asked.request.headers, body: await asked.text(maxBytes) })
      return Response.json(body, { status })
    },
  }),
]
