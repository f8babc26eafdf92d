import { createHash } from 'node:crypto'
import { checkNames, checkText, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { isObject } from '../base/json.ts'
import { invalidBody, parseObject } from './body.ts'
import type { SourceEvent, ToldOfEvent, WebhookAnswer, WebhookRequest } from './event.ts'
import { checkSecrets, unverified, verifyHexSignature } from './signature.ts'
import { SignalProvider } from './source.ts'

/** The options of `GitHubSignals`. */
export interface GitHubSignalsOptions {
  /** The secret of the webhook at GitHub; several during a rotation. */
  secret: string | readonly string[]
  /** Defaults to `github`. */
  id?: string
  /**
   * A delivery is rejected if the newest time in its signed payload is older. Defaults to three days, for which GitHub keeps deliveries
   * that can be sent again.
   */
  maxAgeSeconds?: number
}

const keptSeconds = 3 * 24 * 3_600

/**
 * CI, reviews and comments of GitHub. Threads subscribe to `owner/repo`, to `owner/repo#12` for a pull request or an issue, or to
 * `owner/repo@branch`.
 */
export class GitHubSignals extends SignalProvider {
  readonly id: string
  override readonly name = 'GitHub'
  readonly #secrets: string[]
  readonly #maxAgeMs: number

  constructor(options: GitHubSignalsOptions) {
    super()
    checkNames('GitHubSignals', options, ['secret', 'id', 'maxAgeSeconds'])
    const { secret, id = 'github', maxAgeSeconds = keptSeconds } = options
    if (typeof maxAgeSeconds !== 'number' || !(maxAgeSeconds > 0)) throw refused('maxAgeSeconds', 'a number above 0')
    checkText('id', id)
    this.id = id
    this.#maxAgeMs = maxAgeSeconds * 1_000
    this.#secrets = checkSecrets('GitHubSignals', secret)
  }

  override async handleWebhook({ headers, body }: WebhookRequest): Promise<WebhookAnswer> {
    verifyHexSignature(headers.get('x-hub-signature-256'), body, this.#secrets)
    const delivery = headers.get('x-github-delivery') ?? ''
    if (delivery === '' || delivery.length > 256) throw new HeedError('invalid_argument', 'This webhook has no X-GitHub-Delivery.')
    // The id of a delivery is not signed, so that a captured request could be repeated under another. The body is signed.
    const id = createHash('sha256').update(body).digest('hex').slice(0, 32)
    const payload = payloadOf(headers, body)
    const at = newestTime(payload)
    if (at !== undefined && this.environment.clock.now() - at > this.#maxAgeMs) throw unverified('Its event is too old.')
    const parsed = parseGitHubEvent(headers.get('x-github-event') ?? '', payload)
    return { status: 200, body: { delivered: parsed ? await this.deliver({ id, ...parsed }) : 0 } }
  }
}

/** GitHub sends JSON, or a form with the JSON in one field. */
function payloadOf(headers: Headers, body: string): GitHubPayload {
  const form = (headers.get('content-type') ?? '').toLowerCase().startsWith('application/x-www-form-urlencoded')
  const text = form ? new URLSearchParams(body).get('payload') : body
  if (text === null) throw invalidBody("a form with a field 'payload'")
  return parseObject(text)
}

/**
 * When the event of a payload happened: the newest of its times. GitHub signs no time of the delivery itself. Undefined for payloads
 * without a time, of which no reported event of GitHub is one.
 */
function newestTime(payload: GitHubPayload): number | undefined {
  const { workflow_run, check_run, check_suite, pull_request, issue, review: given, comment: written } = payload
  const parts: unknown[] = [payload, workflow_run, check_run, check_run?.check_suite, check_suite, pull_request, issue, given, written]
  const times = parts.flatMap(
    (part) => (isObject(part) ? timeFields.map((name) => Date.parse(String(part[name]))) : []),
  )
  const newest = Math.max(...times.filter((time) => !Number.isNaN(time)))
  return Number.isFinite(newest) ? newest : undefined
}

const timeFields = ['created_at', 'updated_at', 'started_at', 'run_started_at', 'completed_at', 'submitted_at', 'closed_at', 'merged_at']

type ParsedEvent = Omit<SourceEvent, 'id' | 'notification'> & { notification: ToldOfEvent }

/** The fields of GitHub's payloads that are used. */
interface GitHubPayload {
  action?: string
  repository?: { id?: number; full_name?: string }
  sender?: { login?: string }
  workflow_run?: WorkflowRun
  check_run?: CheckRun
  check_suite?: CheckSuite
  state?: string
  context?: string
  description?: string | null
  target_url?: string | null
  sha?: string
  branches?: ReadonlyArray<{ name?: string }>
  pull_request?: { number?: number; title?: string; html_url?: string; merged?: boolean }
  issue?: { number?: number; title?: string; html_url?: string }
  review?: { state?: string; body?: string | null; html_url?: string }
  comment?: { body?: string; html_url?: string }
}

interface WorkflowRun {
  name?: string | null
  conclusion?: string | null
  html_url?: string
  head_branch?: string | null
  head_sha?: string
  /** Differs from the payload's repository for a pull request of a fork. */
  head_repository?: { full_name?: string } | null
  pull_requests?: readonly PullRequest[]
}

interface CheckSuite {
  id?: number
  conclusion?: string | null
  head_branch?: string | null
  head_sha?: string
  app?: App | null
  pull_requests?: readonly PullRequest[]
}

interface CheckRun {
  name?: string
  conclusion?: string | null
  html_url?: string
  head_sha?: string
  app?: App | null
  /** A check run itself has no branch. */
  check_suite?: CheckSuite
  pull_requests?: readonly PullRequest[]
}

interface App {
  slug?: string
  name?: string
}

interface PullRequest {
  number?: number
  base?: { repo?: { id?: number } }
}

/** A result of CI, from any of its events. */
interface Result {
  /** Identifies what was checked: a later event with the same values is a newer result. */
  check: readonly unknown[]
  name: string
  conclusion: string | null | undefined
  branch: string | null | undefined
  /** The repository of the branch, where that is a fork. */
  fork?: string | undefined
  sha: string | undefined
  url: string | undefined
  pulls: readonly PullRequest[] | undefined
}

/** The notification of an event; undefined for events that are not reported. */
function parseGitHubEvent(event: string, payload: GitHubPayload): ParsedEvent | undefined {
  const repository = payload.repository?.full_name
  if (repository === undefined) return undefined
  const { action, workflow_run, check_run, check_suite } = payload
  switch (event) {
    case 'workflow_run':
      return action === 'completed' && workflow_run ? finished(repository, ofWorkflow(repository, workflow_run), payload) : undefined
    case 'check_run':
      return action === 'completed' && check_run ? finished(repository, ofCheckRun(check_run), payload) : undefined
    case 'check_suite':
      return action === 'completed' && check_suite ? finished(repository, ofCheckSuite(check_suite), payload) : undefined
    case 'status':
      return status(repository, payload)
    case 'pull_request_review':
      return action === 'submitted' ? review(repository, payload) : undefined
    case 'issue_comment':
    case 'pull_request_review_comment':
      return action === 'created' ? comment(repository, payload) : undefined
    case 'pull_request':
      return pullRequest(repository, payload)
    default:
      return undefined
  }
}

function ofWorkflow(
  repository: string, { name, conclusion, html_url, head_branch, head_sha, head_repository, pull_requests }: WorkflowRun,
): Result {
  const from = head_repository?.full_name
  return {
    check: ['workflow', name ?? ''],
    name: name ?? 'CI',
    conclusion,
    branch: head_branch,
    fork: from === repository ? undefined : from,
    sha: head_sha,
    url: html_url,
    pulls: pull_requests,
  }
}

function ofCheckRun({ name = 'CI', conclusion, html_url, head_sha, app, check_suite, pull_requests }: CheckRun): Result {
  // Jobs of different workflows may have one name: the suite distinguishes them.
  const within = app?.slug === 'github-actions' ? check_suite?.id : app?.slug
  return {
    check: ['check', within ?? '', name],
    name,
    conclusion,
    branch: check_suite?.head_branch,
    sha: head_sha,
    url: html_url,
    pulls: pull_requests ?? check_suite?.pull_requests,
  }
}

function ofCheckSuite({ id, conclusion, head_branch, head_sha, app, pull_requests }: CheckSuite): Result {
  const within = app?.slug === 'github-actions' ? id : app?.slug
  return {
    check: ['suite', within ?? ''],
    name: app?.name ?? 'CI',
    conclusion,
    branch: head_branch,
    sha: head_sha,
    url: undefined,
    pulls: pull_requests,
  }
}

const passing: ReadonlySet<string> = new Set(['success', 'neutral', 'skipped'])

function finished(
  repository: string, { check, name, conclusion, branch: given, fork, sha = '', url, pulls = [] }: Result, payload: GitHubPayload,
): ParsedEvent | undefined {
  if (!conclusion) return undefined
  const branch = given ?? undefined
  // A branch may also have pull requests in other repositories.
  const here = pulls.filter(
    ({ base }) => base?.repo?.id === undefined || payload.repository?.id === undefined || base.repo.id === payload.repository.id,
  )
  const numbers = here.flatMap(({ number }) => number ?? []).toSorted((one, other) => one - other)
  const owned = branch !== undefined && fork === undefined
  const where = branch === undefined ? sha.slice(0, 7) : fork === undefined ? branch : `${fork}:${branch}`
  return {
    externalIds: [...numbers.map((number) => `${repository}#${number}`), ...(owned ? [`${repository}@${branch}`] : []), repository],
    notification: {
      kind: 'ci-status',
      priority: passing.has(conclusion) ? 'low' : 'high',
      summary: `${name} ${conclusion} on ${repository}${where === '' ? '' : ` (${where})`}${link(url)}`,
      // A newer result of the same check replaces one that is pending: for the same branch, or the same pull requests.
      coalesceKey: keyOf(repository, check, numbers, branch === undefined && numbers.length === 0 ? [sha] : [fork ?? '', branch ?? '']),
      attributes: { conclusion, repository },
      payload: brief(payload),
    },
  }
}

const longestKey = 500

function keyOf(...parts: readonly unknown[]): string {
  const key = JSON.stringify(parts)
  return key.length > longestKey ? createHash('sha256').update(key).digest('hex') : key
}

function status(
  repository: string, { state, context = 'status', description, target_url, branches = [], sha = '' }: GitHubPayload,
): ParsedEvent | undefined {
  if (state === undefined || state === 'pending') return undefined
  const names = branches.flatMap(({ name }) => name ?? [])
  return {
    externalIds: [...names.map((name) => `${repository}@${name}`), repository],
    notification: {
      kind: 'ci-status',
      priority: state === 'success' ? 'low' : 'high',
      summary: `${`${context} ${state} on ${repository} ${sha.slice(0, 7)}`.trim()}${quoted(description)}${link(target_url)}`,
      coalesceKey: keyOf(repository, ['status', context], [sha]),
      attributes: { state, repository },
    },
  }
}

function review(repository: string, { review: given, pull_request: about, sender, action }: GitHubPayload): ParsedEvent | undefined {
  if (!given || about?.number === undefined) return undefined
  const words = { approved: 'approved', changes_requested: 'asked for changes on' }[given.state ?? ''] ?? 'reviewed'
  return {
    externalIds: [`${repository}#${about.number}`, repository],
    notification: {
      kind: 'review',
      priority: given.state === 'changes_requested' ? 'high' : 'medium',
      summary: `${sender?.login ?? 'Somebody'} ${words} ${repository}#${about.number}${quoted(given.body)}${link(given.html_url)}`,
      attributes: { state: given.state ?? 'commented', repository },
      payload: brief({ ...(action === undefined ? {} : { action }), review: given, pull_request: about }),
    },
  }
}

function comment(
  repository: string, { comment: given, issue, pull_request: pull, sender, action }: GitHubPayload,
): ParsedEvent | undefined {
  const number = issue?.number ?? pull?.number
  if (!given || number === undefined) return undefined
  return {
    externalIds: [`${repository}#${number}`, repository],
    notification: {
      kind: 'comment',
      priority: 'medium',
      summary: `${sender?.login ?? 'Somebody'} commented on ${repository}#${number}${quoted(given.body)}${link(given.html_url)}`,
      attributes: { repository },
      payload: brief({ ...(action === undefined ? {} : { action }), comment: given }),
    },
  }
}

function pullRequest(repository: string, { action, pull_request: about, sender }: GitHubPayload): ParsedEvent | undefined {
  if (about?.number === undefined || (action !== 'opened' && action !== 'closed' && action !== 'reopened')) return undefined
  const what = action === 'closed' ? (about.merged ? 'merged' : 'closed') : action
  return {
    externalIds: [`${repository}#${about.number}`, repository],
    notification: {
      kind: 'pull-request',
      priority: 'low',
      summary: `${sender?.login ?? 'Somebody'} ${what} ${repository}#${about.number}: ${about.title ?? ''}${link(about.html_url)}`,
      attributes: { action: what, repository },
    },
  }
}

const most = 500

function quoted(text: string | null | undefined): string {
  if (!text) return ''
  // Not inside of a surrogate pair.
  return `: ${text.length > most ? `${text.slice(0, most).replace(/[\uD800-\uDBFF]$/, '')}…` : text}`
}

function link(url: string | null | undefined): string {
  return url ? ` ${url}` : ''
}

/** Payloads are large and mostly URLs: only the fields that tools need are stored. */
function brief({
  action, workflow_run, check_run, check_suite, pull_request, review: given, comment,
}: GitHubPayload): Record<string, unknown> {
  const parts = Object.entries({ workflow_run, check_run, check_suite, pull_request, review: given, comment }).flatMap(
    ([name, part]) => (part ? [[name, plain(part)] as const] : []),
  )
  return { ...(action === undefined ? {} : { action }), ...Object.fromEntries(parts) }
}

function plain(part: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(part).filter(
      ([name, value]) => (typeof value !== 'object' || value === null) && (name === 'html_url' || !name.endsWith('url')),
    ),
  )
}
