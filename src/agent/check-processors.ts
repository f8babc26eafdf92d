import { HeedError } from '../base/errors.ts'
import { allHooks, inputHooks, outputHooks, type Hook } from '../processors/hooks.ts'
import type { Processor } from '../processors/processor.ts'

/** Both lists of an agent or a call; one that only a request can find is not there yet. */
export interface ProcessorLists {
  input: unknown
  output: unknown
}

const asks = { input: inputHooks, output: outputHooks } as const
/** What was looked at before: every run brings the same ones. */
const known = new WeakSet()
const asked = { input: new WeakSet(), output: new WeakSet() }
/** Memory's own, which say by being there what memory is to do. */
const hookless: readonly string[] = ['message-history', 'working-memory', 'semantic-recall']

/** Refuses what is no processor, and processors that would never be asked: a guardrail that does nothing must not look like one. */
export function checkProcessors(lists: ProcessorLists, agent: string): void {
  checkSide(lists, 'input', agent)
  checkSide(lists, 'output', agent)
}

function checkSide(lists: ProcessorLists, side: keyof ProcessorLists, agent: string): void {
  const list = lists[side]
  if (list === undefined) return
  const key = `${side}Processors`
  if (!Array.isArray(list)) throw new HeedError('invalid_agent', `${key} of agent '${agent}' must be a list of processors.`)
  const before = asked[side]
  for (let index = 0; index < list.length; index++) {
    const entry: unknown = list[index]
    if (before.has(entry as object)) continue
    if (!isKnown(entry)) checkProcessor(entry, `${key} of agent '${agent}'`)
    if (!isKnown(entry)) continue
    if (!isAsked(entry, side) && !isInBoth(entry, lists, side)) throw neverAsked(entry, side, agent)
    if (isAsked(entry, side)) before.add(entry)
  }
}

function isKnown(entry: unknown): entry is Processor {
  return typeof entry === 'object' && entry !== null && known.has(entry)
}

function checkProcessor(entry: unknown, where: string): void {
  const value = entry as { id?: unknown; createRun?: unknown } | null
  if (typeof value?.createRun === 'function') {
    throw new HeedError('unsupported_option', `${where} holds a workflow, which Heed can't run yet. Use a processor object.`)
  }
  if (typeof value !== 'object' || value === null || typeof value.id !== 'string' || value.id === '') {
    throw new HeedError('invalid_agent', `${where} must hold processors: objects with an id and at least one hook.`)
  }
  checkFields(value, `Processor '${value.id}' in ${where}`)
  known.add(value)
}

function checkFields(processor: Record<string, unknown>, who: string): void {
  const { id, timeoutMs, maxDeltas } = processor
  for (const field of ['name', 'stateId']) {
    const text = processor[field]
    if (text !== undefined && (typeof text !== 'string' || text === '')) throw new HeedError('invalid_agent', `${who}: ${field} must be a text that is not empty.`)
  }
  for (const hook of allHooks) {
    if (processor[hook] !== undefined && typeof processor[hook] !== 'function') throw new HeedError('invalid_agent', `${who}: ${hook} must be a function.`)
  }
  for (const name of namesOf(processor)) {
    const meant = allHooks.find((hook) => processor[hook] === undefined && name !== hook && isNearly(name, hook))
    if (meant) throw new HeedError('invalid_agent', `${who}: '${name}' is no hook. Did you mean ${meant}?`)
  }
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs > 0)) {
    throw new HeedError('invalid_agent', `${who}: timeoutMs must be a number of milliseconds above 0.`)
  }
  if (maxDeltas !== undefined && !(Number.isInteger(maxDeltas) && (maxDeltas as number) > 0)) {
    throw new HeedError('invalid_agent', `${who}: maxDeltas must be a whole number above 0.`)
  }
  if (!hookless.includes(String(id)) && !allHooks.some((hook) => processor[hook] !== undefined)) {
    throw new HeedError('invalid_agent', `${who} has no hook, so that it would never be asked. Hooks are ${allHooks.join(', ')}.`)
  }
}

/** Its own and those of its classes. */
function namesOf(value: object): string[] {
  const names: string[] = []
  for (let of: object | null = value; of !== null && of !== Object.prototype; of = Reflect.getPrototypeOf(of)) names.push(...Object.getOwnPropertyNames(of))
  return names
}

/** Two letters apart at most, in whatever case. */
function isNearly(name: string, hook: Hook): boolean {
  const [a, b] = [name.toLowerCase(), hook.toLowerCase()]
  if (Math.abs(a.length - b.length) > 2) return false
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return (row.at(-1) ?? 0) <= 2
}

function isAsked(processor: Processor, side: keyof ProcessorLists): boolean {
  return hookless.includes(processor.id) || asks[side].some((hook) => processor[hook] !== undefined)
}

/** One that is in both lists is asked in the other; what the other list is may not be known yet. */
function isInBoth(processor: Processor, { input, output }: ProcessorLists, side: keyof ProcessorLists): boolean {
  const other = side === 'input' ? output : input
  return other === undefined || (Array.isArray(other) && other.includes(processor))
}

function neverAsked(processor: Processor, side: keyof ProcessorLists, agent: string): HeedError {
  const hooks = allHooks.filter((hook) => processor[hook] !== undefined).join(', ')
  const [here, there] = side === 'input' ? ['inputProcessors', 'outputProcessors'] : ['outputProcessors', 'inputProcessors']
  return new HeedError('invalid_agent', `Processor '${processor.id}' in ${here} of agent '${agent}' has ${hooks}, which is never asked there. Put it into ${there}.`, {
    details: { processorId: processor.id, list: here },
  })
}
