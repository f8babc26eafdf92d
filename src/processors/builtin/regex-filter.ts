import { checkNames } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import type { Message } from '../../message/message.ts'
import type {
  Processor, ProcessInputArgs, ProcessOutputResultArgs, ProcessOutputStepArgs, ProcessOutputStreamArgs, ProcessorContext,
} from '../processor.ts'
import { checkCount, checkTextList, checkOneOf, checkForOutput } from './option-checks.ts'
import { regexPresets, type RegexPreset } from './regex-presets.ts'
import { StreamedText, TextScanner, type RegexRule, type Scanned } from './text-scanner.ts'
import { blockKey, isDelta, isEnd, PerRun, release, withText, withAllTexts } from './texts.ts'

/** The options of `RegexFilter`. */
export interface RegexFilterOptions {
  presets?: readonly RegexPreset[]
  rules?: readonly RegexRule[]
  /** `block`: reject. `redact`: replace matches by a placeholder. `warn`: log a warning. Defaults to `block`. */
  strategy?: 'block' | 'redact' | 'warn'
  /** Defaults to both. For `output` the filter has to be an output processor, for `input` an input processor. */
  phases?: ReadonlyArray<'input' | 'output'>
  /** How many characters are held back for rules without an `opening`: the longest match that is always found. Defaults to 256. */
  holdBack?: number
}

type Phase = 'input' | 'output'
const allPhases: readonly string[] = ['input', 'output']
const strategies: readonly string[] = ['block', 'redact', 'warn']

/**
 * Finds matches of patterns, such as secrets and personal data, in input (also during a run) and in the text and reasoning of the model.
 *
 * A stream is held back where a match may have begun, so that a match which is split over many chunks is found before any part of it is
 * published. Ordinary text is delayed by a word; matches of up to 8,192 characters are found. Raw chunks of the provider are dropped,
 * since they contain the unfiltered text. Tool calls, their results, files and attributes of signals are not checked.
 *
 * @example new RegexFilter({ presets: ['secrets', 'pii'], strategy: 'redact' })
 */
export class RegexFilter implements Processor<'regex-filter'> {
  readonly id = 'regex-filter'
  /** Only set where the stream is filtered: a call for every chunk costs time. */
  readonly processOutputStream?: Processor['processOutputStream']
  readonly #scanner: TextScanner
  readonly #strategy: 'block' | 'redact' | 'warn'
  readonly #phases: ReadonlySet<Phase>
  readonly #streams: PerRun<Map<string, StreamedText>>
  /** The texts that checks of a run left: they need no other check. */
  readonly #checked = new PerRun(() => new Set<string>())
  /** Runs whose reasoning was changed in the stream. */
  readonly #changedReasoning = new WeakSet()

  constructor(options: RegexFilterOptions) {
    checkNames('RegexFilter', options, ['presets', 'rules', 'strategy', 'phases', 'holdBack'])
    const { presets = [], rules = [], strategy = 'block', phases = ['input', 'output'], holdBack = 256 } = options
    for (const [name, list] of Object.entries({ presets, rules })) {
      if (!Array.isArray(list)) throw invalidRegexFilter(name, `takes a list as ${name}.`)
    }
    const known = [...presets.flatMap(presetRules), ...rules.map(checkedRule)]
    if (known.length === 0) throw invalidRegexFilter('presets', "has no rules: new RegexFilter({ presets: ['secrets'] }).")
    checkOneOf('RegexFilter', 'strategy', strategies, strategy)
    checkTextList('RegexFilter', 'phases', phases, allPhases)
    checkCount('RegexFilter', 'holdBack', holdBack, 1)
    checkForOutput('RegexFilter', 'holdBack', options.holdBack !== undefined, phases)
    this.#scanner = new TextScanner(known)
    this.#strategy = strategy
    this.#phases = new Set(phases)
    this.#streams = new PerRun(() => new Map())
    if (this.#phases.has('output') && strategy !== 'warn') this.processOutputStream = (args) => this.#stream(args, holdBack)
  }

  processInput(args: ProcessInputArgs): Message[] | undefined {
    return this.#phases.has('input') ? this.#check(args.messages, args, 'input') : undefined
  }

  /** Checks a step with tool calls, whose text is stored before the tools run. `processOutputResult` checks the last step. */
  processOutputStep(args: ProcessOutputStepArgs): Message[] | undefined {
    return args.toolCalls.length > 0 ? this.processOutputResult(args) : undefined
  }

  processOutputResult(args: ProcessOutputResultArgs | ProcessOutputStepArgs): Message[] | undefined {
    if (!this.#phases.has('output')) return undefined
    const messages = this.#changedReasoning.delete(args.state) ? args.messages.map(withoutSignatures) : args.messages
    return this.#check(messages, args, 'output') ?? (messages === args.messages ? undefined : messages)
  }

  #check(messages: Message[], context: ProcessorContext, phase: Phase): Message[] | undefined {
    const found = new Set<string>()
    const checked = this.#checked.of(context.state)
    const redacted = withAllTexts(messages, (text) => {
      if (phase === 'output' && checked.has(text)) return text
      const scanned = this.#scanner.redact(text)
      for (const name of scanned.found) found.add(name)
      if (phase === 'output') checked.add(this.#strategy === 'redact' ? scanned.text : text)
      return scanned.text
    })
    if (found.size === 0) return undefined
    this.#report([...found], context, phase)
    return this.#strategy === 'redact' ? redacted : undefined
  }

  #stream(args: ProcessOutputStreamArgs, holdBack: number) {
    const { part } = args
    if (part.type === 'raw') return null
    if (!isDelta(part) && !isEnd(part)) return undefined
    const blocks = this.#streams.of(args.state)
    const key = blockKey(part)
    let block = blocks.get(key)
    if (isDelta(part)) {
      if (!block) blocks.set(key, (block = new StreamedText(this.#scanner, holdBack)))
      return withText(part, this.#textOf(block.add(part.payload.text), args))
    }
    blocks.delete(key)
    return release(args, part, block ? this.#textOf(block.end(), args) : '')
  }

  #textOf({ text, found }: Scanned, args: ProcessOutputStreamArgs): string {
    if (found.length === 0) return text
    if (args.part.type.startsWith('reasoning')) this.#changedReasoning.add(args.state)
    this.#report(found, args, 'output')
    return text
  }

  #report(found: string[], { abort, logger, runId }: ProcessorContext, phase: Phase): void {
    if (this.#strategy === 'block') {
      abort(`Rejected by ${this.id}: the ${phase} has ${found.join(', ')}`, { metadata: { phase, rules: found } })
    }
    if (this.#strategy === 'warn') logger.warn(`${this.id} found matches in the ${phase}`, { runId, rules: found })
  }
}

/** A provider rejects reasoning that doesn't match its signature. The stream doesn't record which part was changed, so all lose theirs. */
function withoutSignatures(message: Message): Message {
  const parts = message.content.parts.map((part) => (part.type === 'reasoning' ? { type: part.type, reasoning: part.reasoning } : part))
  return { ...message, content: { ...message.content, parts } }
}

function presetRules(preset: RegexPreset): readonly RegexRule[] {
  const rules: readonly RegexRule[] | undefined = Object.hasOwn(regexPresets, preset) ? regexPresets[preset] : undefined
  if (rules) return rules
  const known = Object.keys(regexPresets).join(', ')
  throw invalidRegexFilter('presets', `has no preset ${JSON.stringify(preset)}. Known: ${known}.`)
}

function checkedRule(rule: RegexRule): RegexRule {
  if (typeof rule !== 'object' || (rule as unknown) === null || typeof rule.name !== 'string' || rule.name === '') {
    throw invalidRegexFilter('rules', 'needs a name for each of its rules.')
  }
  checkNames(`The rule '${rule.name}' of RegexFilter`, rule, ['name', 'pattern', 'replacement', 'measure', 'opening'])
  const pattern: unknown = rule.pattern
  const opening: unknown = rule.opening
  if (typeof pattern === 'string') {
    const reason = `takes no text as the pattern of '${rule.name}': a text may be untrusted, and an untrusted pattern can block the `
      + 'process. Write it as a RegExp in the program.'
    throw invalidRegexFilter('rules', reason)
  }
  if (!(pattern instanceof RegExp)) throw invalidRegexFilter('rules', `needs a RegExp as the pattern of '${rule.name}'.`)
  if (opening !== undefined && !(opening instanceof RegExp)) {
    throw invalidRegexFilter('rules', `needs a RegExp as the opening of '${rule.name}'.`)
  }
  if (rule.measure !== undefined && typeof rule.measure !== 'function') {
    throw invalidRegexFilter('rules', `needs a function as the measure of '${rule.name}'.`)
  }
  if (rule.replacement !== undefined && (typeof rule.replacement !== 'string' || rule.replacement === '')) {
    const reason = `needs a replacement for '${rule.name}' that is not empty: the text around a match must not become one word.`
    throw invalidRegexFilter('rules', reason)
  }
  return rule
}

function invalidRegexFilter(field: string, reason: string): HeedError {
  return new HeedError('invalid_argument', `RegexFilter ${reason}`, { details: { field } })
}
