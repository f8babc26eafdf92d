import { createHash } from 'node:crypto'
import { HeedError } from '../errors.ts'
import { checkSecrets, verifyHexSignature } from './signature.ts'
import type { SourceEvent, WebhookAnswer, WebhookRequest } from './event.ts'
import { SignalProvider } from './source.ts'
import { wrongBody } from './webhook.ts'

export interface GitHubSignalsOptions {
  /** Of the webhook, as it is set up at GitHub. A list while it is changed. */
  secret: string | readonly string[]
  /** Defaults to `github`. */
  id?: string
}

type Told = Omit<SourceEvent, 'id'>

/** As much of GitHub's payloads as is read here. */
interface Payload {
  action?: string
  repository?: { full_name?: string }
  sender?: { login?: string }
  workflow_run?: Check & { name?: string }
  check_run?: Check & { name?: string }
  state?: string
  context?: string
  sha?: string
  branches?: ReadonlyArray<{ name?: string }>
  pull_request?: { number?: number; title?: string; html_url?: string; merged?: boolean }
  issue?: { number?: number; title?: string; html_url?: string }
  review?: { state?: string; body?: string | null; html_url?: string }
  comment?: { body?: string; html_url?: string }
}

interface Check {
  conclusion?: string | null
  html_url?: string
  head_branch?: string | null
  pull_requests?: ReadonlyArray<{ number?: number }>
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
    const told = toldBy(headers.get('x-github-event') ?? '', payloadOf(body))
    return { status: 200, body: { delivered: told ? await this.deliver({ id, ...told }) : 0 } }
  }
}

function payloadOf(body: string): Payload {
  try {
    const value: unknown = JSON.parse(body)
    if (typeof value === 'object' && value !== null) return value
  } catch (cause) {
    throw wrongBody('JSON', cause)
  }
  throw wrongBody('a JSON object')
}

/** What threads are told of an event; nothing of those that nobody waits for. */
function toldBy(event: string, payload: Payload): Told | undefined {
  const repository = payload.repository?.full_name
  if (repository === undefined) return undefined
  switch (event) {
    case 'workflow_run':
      return payload.action === 'completed' ? finished(repository, payload.workflow_run, payload) : undefined
    case 'check_run':
      return payload.action === 'completed' ? finished(repository, payload.check_run, payload) : undefined
    case 'status':
      return status(repository, payload)
    case 'pull_request_review':
      return payload.action === 'submitted' ? review(repository, payload) : undefined
    case 'issue_comment':
    case 'pull_request_review_comment':
      return payload.action === 'created' ? comment(repository, payload) : undefined
    case 'pull_request':
      return pullRequest(repository, payload)
    default:
      return undefined
  }
}

function finished(repository: string, check: (Check & { name?: string }) | undefined, payload: Payload): Told | undefined {
  if (!check?.conclusion) return undefined
  const passed = check.conclusion === 'success' || check.conclusion === 'neutral' || check.conclusion === 'skipped'
  const numbers = (check.pull_requests ?? []).flatMap(({ number }) => number ?? [])
  const branch = check.head_branch ?? undefined
  return {
    externalIds: [...numbers.map((number) => `${repository}#${number}`), ...(branch === undefined ? [] : [`${repository}@${branch}`]), repository],
    notification: {
      kind: 'ci-status',
      priority: passed ? 'low' : 'high',
      summary: `${check.name ?? 'CI'} ${check.conclusion} on ${repository}${branch === undefined ? '' : ` (${branch})`}${link(check.html_url)}`,
      // A newer result of the same check takes the place of one that nobody has read.
      coalesceKey: `${repository}/${branch ?? ''}/${check.name ?? ''}`,
      attributes: { conclusion: check.conclusion, repository },
      payload: brief(payload),
    },
  }
}

function status(repository: string, { state, context = 'status', branches = [], sha = '' }: Payload): Told | undefined {
  if (state === undefined || state === 'pending') return undefined
  const names = branches.flatMap(({ name }) => name ?? [])
  return {
    externalIds: [...names.map((name) => `${repository}@${name}`), repository],
    notification: { kind: 'ci-status', priority: state === 'success' ? 'low' : 'high', summary: `${context} ${state} on ${repository} ${sha.slice(0, 7)}`.trim(), coalesceKey: `${repository}/${sha}/${context}`, attributes: { state, repository } },
  }
}

function review(repository: string, { review: given, pull_request: about, sender, ...payload }: Payload): Told | undefined {
  if (!given || about?.number === undefined) return undefined
  const words = { approved: 'approved', changes_requested: 'asked for changes on' }[given.state ?? ''] ?? 'reviewed'
  return {
    externalIds: [`${repository}#${about.number}`, repository],
    notification: {
      kind: 'review',
      priority: given.state === 'changes_requested' ? 'high' : 'medium',
      summary: `${sender?.login ?? 'Somebody'} ${words} ${repository}#${about.number}${quoted(given.body)}${link(given.html_url)}`,
      attributes: { state: given.state ?? 'commented', repository },
      payload: brief({ ...payload, review: given, pull_request: about }),
    },
  }
}

function comment(repository: string, { comment: given, issue, pull_request: pull, sender, ...payload }: Payload): Told | undefined {
  const number = issue?.number ?? pull?.number
  if (!given || number === undefined) return undefined
  return {
    externalIds: [`${repository}#${number}`, repository],
    notification: {
      kind: 'comment',
      priority: 'medium',
      summary: `${sender?.login ?? 'Somebody'} commented on ${repository}#${number}${quoted(given.body)}${link(given.html_url)}`,
      attributes: { repository },
      payload: brief({ ...payload, comment: given }),
    },
  }
}

function pullRequest(repository: string, { action, pull_request: about, sender }: Payload): Told | undefined {
  if (about?.number === undefined || (action !== 'opened' && action !== 'closed' && action !== 'reopened')) return undefined
  const what = action === 'closed' ? (about.merged ? 'merged' : 'closed') : action
  return {
    externalIds: [`${repository}#${about.number}`, repository],
    notification: { kind: 'pull-request', priority: 'low', summary: `${sender?.login ?? 'Somebody'} ${what} ${repository}#${about.number}: ${about.title ?? ''}${link(about.html_url)}`, attributes: { action: what, repository } },
  }
}

const most = 500

function quoted(text: string | null | undefined): string {
  if (!text) return ''
  // Not in the middle of a pair.
  return `: ${text.length > most ? `${text.slice(0, most).replace(/[\uD800-\uDBFF]$/, '')}…` : text}`
}

function link(url: string | undefined): string {
  return url === undefined ? '' : ` ${url}`
}

/** Whole payloads are large; what is read here is kept for tools. */
function brief({ action, workflow_run, check_run, pull_request, review: given, comment: said }: Payload): Record<string, unknown> {
  const parts = { action, workflow_run, check_run, pull_request, review: given, comment: said }
  const kept = Object.entries(parts).filter(([, value]) => value !== undefined)
  return JSON.parse(JSON.stringify(Object.fromEntries(kept))) as Record<string, unknown>
}
