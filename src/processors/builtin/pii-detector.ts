import { checkNames } from '../../base/arguments.ts'
import { Judge, type JudgeOptions, judgeNames } from './judge.ts'
import { JudgedTexts, type JudgedPhase, type JudgedTextsOptions, type Rewrite } from './judged-texts.ts'
import { checkFlag, checkTexts, checkWord } from './option-kinds.ts'
import type { ProcessorContext } from '../processor.ts'
import { replaced, quotedIn, type Passage } from './passages.ts'

export interface PIIDetectorOptions extends JudgeOptions, JudgedTextsOptions {
  /** What counts. Defaults to names, addresses, contacts, numbers of documents and accounts, birth dates, health. */
  types?: readonly string[]
  /** `block`: refuse. `redact`: put `[TYPE]` in its place. `warn`: say so in the log. Defaults to `redact`. */
  strategy?: 'block' | 'redact' | 'warn'
}

const usual = ['person-name', 'address', 'email', 'phone', 'id-number', 'bank-account', 'credit-card', 'birth-date', 'ip-address', 'health']

interface Verdict {
  findings: Array<{ type: string; text: string; score: number }>
}

/**
 * Has a model find personal data that no pattern describes, in what enters and in what the model says. What a pattern can find is
 * found faster and surely by `RegexFilter`: put that first.
 *
 * A judge that names something which is not in the text can't be relied on: that is a failure, see `onFailure`.
 *
 * @example new PIIDetector({ judge: new Agent({ id: 'judge', model: 'openai/gpt-5-nano' }), strategy: 'redact' })
 */
export class PIIDetector extends JudgedTexts<'pii-detector'> {
  readonly id = 'pii-detector'
  readonly #judge: Judge<Verdict>
  readonly #strategy: 'block' | 'redact' | 'warn'

  constructor(options: PIIDetectorOptions) {
    checkNames('PIIDetector', options, [...judgeNames, 'types', 'strategy', 'phases', 'hold', 'thoughts'])
    const { types = usual, strategy = 'redact', phases = ['input', 'output'], hold = false, thoughts = false } = options
    checkTexts('pii-detector', 'phases', phases, ['input', 'output'])
    checkFlag('pii-detector', 'hold', hold)
    checkFlag('pii-detector', 'thoughts', thoughts)
    checkWord('pii-detector', 'strategy', ['block', 'redact', 'warn'], strategy)
    checkTexts('pii-detector', 'types', types)
    super(phases, hold, thoughts)
    this.#strategy = strategy
    this.#judge = new Judge({ processorId: this.id, question: questionOf(types), schema: schemaOf(types) }, options)
  }

  protected async judge(texts: readonly string[], context: ProcessorContext, phase: JudgedPhase): Promise<Rewrite | undefined> {
    const verdict = await this.#judge.ask(texts, context)
    const findings = verdict?.findings.filter(({ score, text }) => score >= this.#judge.threshold && text.trim() !== '') ?? []
    if (findings.length === 0) return undefined
    const types = [...new Set(findings.map(({ type }) => type))]
    if (this.#strategy === 'block') context.abort(`Refused by ${this.id}: the ${phase} has ${types.join(', ')}`, { metadata: { phase, types } })
    if (this.#strategy === 'warn') {
      context.logger.warn(`${this.id} found something in the ${phase}`, { runId: context.runId, types })
      return undefined
    }
    const passages: Passage[] = []
    for (const { type, text } of findings) {
      const quoted = quotedIn(texts, text)
      if (quoted === undefined) this.#judge.fail(`it names something (${type}) that is not in the text`, context)
      else passages.push({ text: quoted, replacement: `[${type.toUpperCase()}]` })
    }
    return (text) => replaced(text, passages)
  }
}

function questionOf(types: readonly string[]): string {
  return `You find personal data. List every passage of the material that is one of these: ${types.join(', ')}. Quote each passage exactly, `
    + 'character by character and as short as it can be, say of which type it is and how surely. An empty list where there is none.'
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
