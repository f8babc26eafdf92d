import { checkNames } from '../../base/arguments.ts'
import type { ProcessorContext } from '../processor.ts'
import { Judge, judgeNames, type JudgeOptions, type Passage, findQuote, replacePassages } from './judge.ts'
import { JudgedTexts, type JudgedPhase, type JudgedTextsOptions, type Rewrite } from './judged-texts.ts'
import { checkFlag, checkForOutput, checkTextList, checkOneOf } from './option-checks.ts'

/** The options of `PIIDetector`. */
export interface PIIDetectorOptions extends JudgeOptions, JudgedTextsOptions {
  /** The types of personal data. Default to names, addresses, contacts, numbers of documents and accounts, birth dates, health. */
  types?: readonly string[]
  /** `block`: reject. `redact`: replace it by `[TYPE]`. `warn`: log a warning. Defaults to `redact`. */
  strategy?: 'block' | 'redact' | 'warn'
}

const defaultTypes = [
  'person-name', 'address', 'email', 'phone', 'id-number', 'bank-account', 'credit-card', 'birth-date', 'ip-address', 'health',
]

interface Verdict {
  findings: Array<{ type: string; text: string; score: number }>
}

/**
 * Has a model find personal data in input and output. `RegexFilter` finds data that a pattern describes faster and reliably: put it
 * first.
 *
 * A judge that quotes a passage which is not in the text has failed: see `onFailure`.
 *
 * @example new PIIDetector({ judge: new Agent({ id: 'judge', model: 'openai/gpt-5-nano' }), strategy: 'redact' })
 */
export class PIIDetector extends JudgedTexts<'pii-detector'> {
  readonly id = 'pii-detector'
  readonly #judge: Judge<Verdict>
  readonly #strategy: 'block' | 'redact' | 'warn'

  constructor(options: PIIDetectorOptions) {
    checkNames('PIIDetector', options, [...judgeNames, 'types', 'strategy', 'phases', 'hold', 'thoughts'])
    const { types = defaultTypes, strategy = 'redact', phases = ['input', 'output'], hold = false, thoughts = false } = options
    checkTextList('pii-detector', 'phases', phases, ['input', 'output'])
    checkFlag('pii-detector', 'hold', hold)
    checkFlag('pii-detector', 'thoughts', thoughts)
    checkForOutput('pii-detector', 'hold', hold, phases)
    checkForOutput('pii-detector', 'thoughts', thoughts, phases)
    checkOneOf('pii-detector', 'strategy', ['block', 'redact', 'warn'], strategy)
    checkTextList('pii-detector', 'types', types)
    super(phases, hold, thoughts)
    this.#strategy = strategy
    this.#judge = new Judge({ processorId: this.id, question: questionOf(types), schema: schemaOf(types) }, options)
  }

  protected async judge(texts: readonly string[], context: ProcessorContext, phase: JudgedPhase): Promise<Rewrite | undefined> {
    const verdict = await this.#judge.ask(texts, context)
    const findings = verdict?.findings.filter(({ score, text }) => score >= this.#judge.threshold && text.trim() !== '') ?? []
    if (findings.length === 0) return undefined
    const types = [...new Set(findings.map(({ type }) => type))]
    if (this.#strategy === 'block') {
      context.abort(`Rejected by ${this.id}: the ${phase} has ${types.join(', ')}`, { metadata: { phase, types } })
    }
    if (this.#strategy === 'warn') {
      context.logger.warn(`${this.id} found personal data in the ${phase}`, { runId: context.runId, types })
      return undefined
    }
    const passages: Passage[] = []
    for (const { type, text } of findings) {
      const quoted = findQuote(texts, text)
      if (quoted === undefined) this.#judge.fail(`it quotes a passage (${type}) that is not in the text`, context)
      else passages.push({ text: quoted, replacement: `[${type.toUpperCase()}]` })
    }
    return (text) => replacePassages(text, passages)
  }
}

function questionOf(types: readonly string[]): string {
  return `You find personal data. List every passage of the material that is one of these: ${types.join(', ')}. Quote each passage `
    + 'exactly, character by character and as short as it can be, say of which type it is and how surely. '
    + 'An empty list where there is none.'
}

function schemaOf(types: readonly string[]) {
  const finding = {
    type: 'object',
    properties: { type: { type: 'string', enum: [...types] }, text: { type: 'string' }, score: { type: 'number' } },
    required: ['type', 'text', 'score'],
    additionalProperties: false,
  }
  return {
    type: 'object' as const,
    properties: { findings: { type: 'array', items: finding } },
    required: ['findings'],
    additionalProperties: false,
  }
}
