import { HeedError } from '../base/errors.ts'
import type { CedarEngine, CedarError } from './engine.ts'
import { defaultPrefix, policyActions, policySchema, type PolicySet } from './schema.ts'

/** Why a policy is refused, and where in its text: line and column count from 1. */
export interface PolicyProblem {
  policyId?: string
  message: string
  /** What to write instead. */
  help?: string
  line: number
  column: number
  /** The length of the offending text on its line, in characters. */
  length: number
}

/** The policies of a text, and what is wrong with them. */
export interface CheckedPolicies {
  problems: PolicyProblem[]
  /** By their ids; empty if a text of several has a problem. */
  policies: PolicySet
}

/** What is wrong with each policy of a set, in the order of the set. */
export function checkPolicies(engine: CedarEngine, policies: PolicySet): PolicyProblem[] {
  if (findings(engine, { ...policies }).length === 0) return []
  // One at a time: of several texts that do not parse, Cedar reports the errors in no order and without the ids as data.
  return Object.entries(policies).flatMap(([policyId, text]) =>
    findings(engine, { [policyId]: text }).map((error) => ({ policyId, ...locate(error, text) })),
  )
}

/** The policies of a text that holds any number of them. The id of a policy is its `@id`, and otherwise `policy` with its position. */
export function readPolicyText(engine: CedarEngine, given: string): CheckedPolicies {
  const text = withoutMark(given)
  const problems = findings(engine, text).map((error) => locate(error, text))
  if (problems.length > 0) return { problems, policies: {} }
  const parts = engine.policySetTextToParts(text)
  if (parts.type === 'failure') return { problems: parts.errors.map((error) => locate(error, text)), policies: {} }
  // Cedar sorts the parts by the ids that it gave them: policy10 comes before policy2.
  const names = parts.policies.map((_, index) => `policy${index}`).toSorted()
  const ordered = parts.policies.map((part, index) => ({ name: names[index] ?? '', part }))
  ordered.sort((one, other) => Number(one.name.slice(6)) - Number(other.name.slice(6)))
  const policies = new Map<string, string>()
  for (const { name, part } of ordered) {
    const id = annotatedId(engine, part) ?? name
    const message = idProblem(id, policies)
    if (message !== undefined) {
      const place = positionOf(text, Math.max(0, text.lastIndexOf(part)))
      return { problems: [{ message, help: 'change its `@id`', ...place, length: 1 }], policies: {} }
    }
    policies.set(id, part)
  }
  return { problems: [], policies: Object.fromEntries(policies) }
}

/** Without the byte order mark that some editors begin a file with. It is no part of the text, and Cedar does not know it. */
export function withoutMark(text: string): string {
  return text.startsWith('\uFEFF') ? text.slice(1) : text
}

/** The error of policies that are refused. */
export function invalidPolicies(problems: readonly PolicyProblem[]): HeedError {
  const [first, ...others] = problems
  const { policyId, line, column, message, help } = first ?? { line: 1, column: 1, message: 'it is invalid' }
  const name = policyId === undefined ? 'A policy' : `The policy '${policyId}'`
  const more = others.length === 0 ? '' : ` ${others.length} more in details.`
  const text = `${name} is invalid at ${line}:${column}: ${message}${help === undefined ? '' : ` (${help})`}.${more}`
  return new HeedError('invalid_policy', text, { details: { ...(policyId === undefined ? {} : { policyId }), problems } })
}

/** Warnings count too: a rule that can never apply, or whose names look like others, protects nothing. */
function findings(engine: CedarEngine, staticPolicies: string | Record<string, string>): CedarError[] {
  const answer = engine.validate({ schema: policySchema, policies: { staticPolicies } })
  if (answer.type === 'failure') return answer.errors
  const errors = answer.validationErrors.map(withSuggestion)
  const erroneous = new Set(answer.validationErrors.map(({ policyId }) => policyId))
  const warnings = answer.validationWarnings.filter(({ policyId }) => !erroneous.has(policyId)).map(({ error }) => error)
  return [...errors, ...warnings, ...answer.otherWarnings].toSorted((one, other) => startOf(one) - startOf(other))
}

/** Cedar's own suggestion for an action is not always the nearest: it takes `recieve_signal` for `send_signal`. */
function withSuggestion({ error }: { error: CedarError }): CedarError {
  const action = /unrecognized action `Policy::Action::"([^"`]{1,64})"`/.exec(error.message)?.[1]
  if (action === undefined) return error
  const distances = policyActions.map((known) => ({ known, distance: editDistance(action, known) }))
  const nearest = distances.reduce((best, one) => (one.distance < best.distance ? one : best))
  return nearest.distance > 4 ? error : { ...error, help: `did you mean \`Policy::Action::"${nearest.known}"\`?` }
}

/** How many letters have to be inserted, deleted or replaced to turn one text into the other. */
function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let at = 0; at < one.length; at++) {
    const next = [at + 1]
    for (let to = 0; to < other.length; to++) {
      next.push(Math.min((next[to] ?? 0) + 1, (row[to + 1] ?? 0) + 1, (row[to] ?? 0) + (one[at] === other[to] ? 0 : 1)))
    }
    row = next
  }
  return row[other.length] ?? 0
}

function idProblem(id: string, others: ReadonlyMap<string, string>): string | undefined {
  if (id.startsWith(defaultPrefix)) return `the id \`${id}\` begins with \`${defaultPrefix}\`, which is reserved`
  return others.has(id) ? `two policies have the id \`${id}\`` : undefined
}

function annotatedId(engine: CedarEngine, policy: string): string | undefined {
  const answer = engine.policyToJson(policy)
  const id = answer.type === 'success' ? answer.json.annotations?.id : undefined
  return id === '' ? undefined : id
}

function startOf(error: CedarError): number {
  return error.sourceLocations?.[0]?.start ?? 0
}

function locate(error: CedarError, text: string): Omit<PolicyProblem, 'policyId'> {
  const place = error.sourceLocations?.[0]
  const bytes = Buffer.from(text)
  const offset = bytes.subarray(0, place?.start ?? 0).toString().length
  const length = place ? bytes.subarray(place.start, place.end).toString().split('\n', 1)[0]?.length ?? 0 : 0
  const message = error.message.replace(/^(for policy `[^`]*`, |failed to parse polic(y with id `[^`]*`|ies) from string: )/, '')
  const help = error.help ?? place?.label ?? undefined
  return { message, ...(help === undefined ? {} : { help }), ...positionOf(text, offset), length: Math.max(1, length) }
}

function positionOf(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset)
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') }
}
