import { createHash } from 'node:crypto'
import { HeedError } from '../base/errors.ts'
import type { WebhookAnswer, WebhookRequest } from './event.ts'
import { toldByGitHub, type GitHubPayload } from './github-events.ts'
import { checkSecrets, verifyHexSignature } from './signature.ts'
import { SignalProvider } from './source.ts'
import { wrongBody } from './webhook.ts'

export interface GitHubSignalsOptions {
  /** Of the webhook, as it is set up at GitHub. A list while it is changed. */
  secret: string | readonly string[]
  /** Defaults to `github`. */
  id?: string
}

/**
 * CI, reviews and comments of GitHub. Threads subscribe to `owner/repo`, to `owner/repo#12` for a pull request or an issue, or to
 * `owner/repo@branch`.
 */
export class GitHubSignals extends SignalProvider {
  readonly id: string
  override readonly name = 'GitHub'
  readonly #secrets: string[]

  constructor({ secret, id = 'github' }: GitHubSignalsOptions) {
    super()
    this.id = id
    this.#secrets = checkSecrets('GitHubSignals', secret)
  }

  override async handleWebhook({ headers, body }: WebhookRequest): Promise<WebhookAnswer> {
    verifyHexSignature(headers.get('x-hub-signature-256'), body, this.#secrets)
    const delivery = headers.get('x-github-delivery') ?? ''
    if (delivery === '' || delivery.length > 256) throw new HeedError('invalid_argument', 'This webhook has no X-GitHub-Delivery.')
    // The delivery's own id is not signed: whoever kept a request could send it again under another. The body is.
    const id = createHash('sha256').update(body).digest('hex').slice(0, 32)
    const told = toldByGitHub(headers.get('x-github-event') ?? '', payloadOf(headers, body))
    return { status: 200, body: { delivered: told ? await this.deliver({ id, ...told }) : 0 } }
  }
}

/** As JSON, or as a form with the JSON in its one field: at GitHub it is one or the other. */
function payloadOf(headers: Headers, body: string): GitHubPayload {
  const form = (headers.get('content-type') ?? '').toLowerCase().startsWith('application/x-www-form-urlencoded')
  const text = form ? new URLSearchParams(body).get('payload') : body
  if (text === null) throw wrongBody("a form with a field 'payload'")
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  } catch (cause) {
    throw wrongBody('JSON', cause)
  }
  throw wrongBody('a JSON object')
}
