import { checkNames } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import type { Message, MessagePart } from '../../message/message.ts'
import { blockOf, isDelta, isEnd, OfRun, release, reworded } from './held-text.ts'
import { checkCount, checkTexts, checkWord } from './option-kinds.ts'
import type {
  Processor, ProcessInputArgs, ProcessOutputResultArgs, ProcessOutputStepArgs, ProcessOutputStreamArgs, ProcessorContext,
} from '../processor.ts'
import { regexPresets, type RegexPreset } from './regex-presets.ts'
import { StreamedText, TextScanner, type Scanned } from './text-scanner.ts'
import { withAllTexts } from './texts.ts'

export interface RegexRule {
  /** Names what was found, in reasons and logs, and in `[NAME]`. */
  name: string
  /**
   * Written by the program: it is run on text from outside, so it has to be linear in it. `(a+)+$` on thirty characters can stop the
   * process. What stands before a match may be looked at up to 64 characters back.
   */
  pattern: RegExp
  /** What stands in place of a match. Defaults to the name, in capitals and brackets. Not empty. */
  replacement?: string
  /** How many characters of a match count, none when it is no match after all: for checksums. */
  measure?(match: string): number
  /**
   * Matches the end of a text that may yet become a match (it ends in `$`). With it a stream is held back only where a match may have
   * begun; without it, by `holdBack` characters all the time.
   */
  opening?: RegExp
}

export interface RegexFilterOptions {
  presets?: readonly RegexPreset[]
  rules?: readonly RegexRule[]
  /** `block`: refuse. `redact`: put a placeholder in its place. `warn`: say so in the log. Defaults to `block`. */
  strategy?: 'block' | 'redact' | 'warn'
  /** Defaults to both. For `output` the filter has to be among the output processors, for `input` among the input processors. */
  phases?: ReadonlyArray<'input' | 'output'>
  /** How many characters are held back for rules without an `opening`: the longest match that is surely caught. Defaults to 256. */
  holdBack?: number
}

type Phase = 'input' | 'output'
const allPhases: readonly string[] = ['input', 'output']
const strategies: readonly string[] = ['block', 'redact', 'warn']

/**
 * Finds secrets, personal data, or whatever a pattern describes, in what enters (also in the middle of a run) and in what the model
 * says and thinks.
 *
 * A stream is held back where a match may have begun, so that one that is split over many chunks is found before any of it is
 * shown. Ordinary text is late by a word; matches of up to 8,192 characters are found whole. Raw chunks of the provider are dropped,
 * since they say what the filter takes out. Tool calls, their results, files and attributes of signals are not looked at.
 *
 * @example new RegexFilter({ presets: ['secrets', 'pii'], strategy: 'redact' })
 */
export class RegexFilter implements Processor<'regex-filter'> {
  readonly id = 'regex-filter'
  /** Only there where it has something to do: to be asked about every chunk costs time. */
  readonly processOutputStream?: Processor['processOutputStream']
  readonly #scanner: TextScanner
  readonly #strategy: 'block' | 'redact' | 'warn'
  readonly #phases: ReadonlySet<Phase>
  readonly #streams: OfRun<Map<string, StreamedText>>
  /** What a run said before and what was looked at then. */
  readonly #seen = new OfRun(() => new WeakSet<MessagePart>())
  /** Runs in which a thought was shown with other words than it had. */
  readonly #thoughts = new WeakSet()

  constructor(options: RegexFilterOptions) {
    checkNames('RegexFilter', options, ['presets', 'rules', 'strategy', 'phases', 'holdBack'])
    const { presets = [], rules = [], strategy = 'block', phases = ['input', 'output'], holdBack = 256 } = options
    for (const [name, list] of Object.entries({ presets, rules })) if (!Array.isArray(list)) throw invalid(name, `takes a list as ${name}.`)
    const known = [...presets.flatMap(presetRules), ...rules.map(checkedRule)]
    if (known.length === 0) throw invalid('presets', "has nothing to look for: new RegexFilter({ presets: ['secrets'] }).")
    checkWord('RegexFilter', 'strategy', strategies, strategy)
    checkTexts('RegexFilter', 'phases', phases, allPhases)
    checkCount('RegexFilter', 'holdBack', holdBack, 1)
    this.#scanner = new TextScanner(known)
    this.#strategy = strategy
    this.#phases = new Set(phases)
    this.#streams = new OfRun(() => new Map())
    if (this.#phases.has('output') && strategy !== 'warn') this.processOutputStream = (args) => this.#stream(args, holdBack)
  }

  processInput(args: ProcessInputArgs): Message[] | undefined {
    return this.#phases.has('input') ? this.#check(args.messages, args, 'input') : undefined
  }

  /** A step with tools: its words are stored before they run. The last one is looked at as the answer. */
  processOutputStep(args: ProcessOutputStepArgs): Message[] | undefined {
    return args.toolCalls.length > 0 ? this.processOutputResult(args) : undefined
  }

  processOutputResult(args: ProcessOutputResultArgs | ProcessOutputStepArgs): Message[] | undefined {
    if (!this.#phases.has('output')) return undefined
    const messages = this.#thoughts.delete(args.state) ? args.messages.map(unsigned) : args.messages
    return this.#check(messages, args, 'output') ?? (messages === args.messages ? undefined : messages)
  }

  #check(messages: Message[], context: ProcessorContext, phase: Phase): Message[] | undefined {
    const found = new Set<string>()
    const seen = this.#seen.of(context.state)
    const made = withAllTexts(messages, (text, part) => {
      if (part && seen.has(part)) return text
      if (part && phase === 'output') seen.add(part)
      const scanned = this.#scanner.redact(text)
      for (const name of scanned.found) found.add(name)
      return scanned.text
    })
    if (found.size === 0) return undefined
    this.#judge([...found], context, phase)
    return this.#strategy === 'redact' ? made : undefined
  }

  #stream(args: ProcessOutputStreamArgs, holdBack: number) {
    const { part } = args
    if (part.type === 'raw') return null
    if (!isDelta(part) && !isEnd(part)) return undefined
    const blocks = this.#streams.of(args.state)
    const key = blockOf(part)
    let block = blocks.get(key)
    if (isDelta(part)) {
      if (!block) blocks.set(key, (block = new StreamedText(this.#scanner, holdBack)))
      return reworded(part, this.#said(block.take(part.payload.text), args))
    }
    blocks.delete(key)
    return release(args, part, block ? this.#said(block.end(), args) : '')
  }

  #said({ text, found }: Scanned, args: ProcessOutputStreamArgs): string {
    if (found.length === 0) return text
    if (args.part.type.startsWith('reasoning')) this.#thoughts.add(args.state)
    this.#judge(found, args, 'output')
    return text
  }

  #judge(found: string[], { abort, logger, runId }: ProcessorContext, phase: Phase): void {
    if (this.#strategy === 'block') abort(`Refused by ${this.id}: the ${phase} has ${found.join(', ')}`, { metadata: { phase, rules: found } })
    if (this.#strategy === 'warn') logger.warn(`${this.id} found something in the ${phase}`, { runId, rules: found })
  }
}

/** A provider refuses a thought that its signature doesn't fit. Which thought was changed is not known any more. */
function unsigned(message: Message): Message {
  const parts = message.content.parts.map((part) => (part.type === 'reasoning' ? { type: part.type, reasoning: part.reasoning } : part))
  return { ...message, content: { ...message.content, parts } }
}

function presetRules(preset: RegexPreset): readonly RegexRule[] {
  const rules: readonly RegexRule[] | undefined = Object.hasOwn(regexPresets, preset) ? regexPresets[preset] : undefined
  if (!rules) throw invalid('presets', `doesn't know the preset ${JSON.stringify(preset)}. There are ${Object.keys(regexPresets).join(', ')}.`)
  return rules
}

function checkedRule(rule: RegexRule): RegexRule {
  if (typeof rule !== 'object' || (rule as unknown) === null || typeof rule.name !== 'string' || rule.name === '') throw invalid('rules', 'needs a name for each of its rules.')
  const pattern: unknown = rule.pattern
  if (typeof pattern === 'string') {
    throw invalid('rules', `takes no text as the pattern of '${rule.name}': a text may come from outside, and a pattern from outside can `
      + 'stop the process. Write it as a RegExp in the program.')
  }
  if (!(pattern instanceof RegExp)) throw invalid('rules', `needs a RegExp as the pattern of '${rule.name}'.`)
  if (rule.opening !== undefined && !((rule.opening as unknown) instanceof RegExp)) throw invalid('rules', `needs a RegExp as the opening of '${rule.name}'.`)
  if (rule.measure !== undefined && typeof rule.measure !== 'function') throw invalid('rules', `needs a function as the measure of '${rule.name}'.`)
  if (rule.replacement !== undefined && (typeof rule.replacement !== 'string' || rule.replacement === '')) {
    throw invalid('rules', `needs a replacement for '${rule.name}' that is not empty: what stands on both sides must not become one word.`)
  }
  return rule
}

function invalid(field: string, why: string): HeedError {
  return new HeedError('invalid_argument', `RegexFilter ${why}`, { details: { field } })
}
