import { checkNames } from '../../base/arguments.ts'
import type { ProcessorContext } from '../processor.ts'
import { Judge, type JudgeOptions, judgeNames } from './judge.ts'
import { JudgedTexts, type JudgedPhase, type JudgedTextsOptions } from './judged-texts.ts'
import { checkFlag, checkForOutput, checkTextList, checkOneOf } from './option-checks.ts'

/** The options of `ModerationProcessor`. */
export interface ModerationOptions extends JudgeOptions, JudgedTextsOptions {
  /** The unwanted categories. Default to hate, harassment, violence, self-harm, sexual, sexual-minors and illicit. */
  categories?: readonly string[]
  /** `block`: reject. `warn`: log a warning. Defaults to `block`. */
  strategy?: 'block' | 'warn'
}

const defaultCategories = ['hate', 'harassment', 'violence', 'self-harm', 'sexual', 'sexual-minors', 'illicit']

interface Verdict {
  categories: Array<{ name: string; score: number }>
}

/**
 * Has a model judge whether input or output belongs to an unwanted category.
 *
 * @example new ModerationProcessor({ judge: new Agent({ id: 'judge', model: 'openai/gpt-5-nano' }), threshold: 0.7 })
 */
export class ModerationProcessor extends JudgedTexts<'moderation'> {
  readonly id = 'moderation'
  readonly #judge: Judge<Verdict>
  readonly #strategy: 'block' | 'warn'

  constructor(options: ModerationOptions) {
    checkNames('ModerationProcessor', options, [...judgeNames, 'categories', 'strategy', 'phases', 'hold', 'thoughts'])
    const { categories = defaultCategories, strategy = 'block', phases = ['input', 'output'], hold = false, thoughts = false } = options
    checkTextList('moderation', 'phases', phases, ['input', 'output'])
    checkFlag('moderation', 'hold', hold)
    checkFlag('moderation', 'thoughts', thoughts)
    checkForOutput('moderation', 'hold', hold, phases)
    checkForOutput('moderation', 'thoughts', thoughts, phases)
    checkOneOf('moderation', 'strategy', ['block', 'warn'], strategy)
    checkTextList('moderation', 'categories', categories)
    super(phases, hold, thoughts)
    this.#strategy = strategy
    this.#judge = new Judge({ processorId: this.id, question: questionOf(categories), schema: schemaOf(categories) }, options)
  }

  protected async judge(texts: readonly string[], context: ProcessorContext, phase: JudgedPhase): Promise<undefined> {
    const verdict = await this.#judge.ask(texts, context)
    const found = verdict?.categories.filter(({ score }) => score >= this.#judge.threshold) ?? []
    if (found.length === 0) return
    const names = found.map(({ name }) => name)
    const scores = Object.fromEntries(found.map(({ name, score }) => [name, score]))
    const { runId } = context
    if (this.#strategy === 'warn') context.logger.warn(`${this.id} found unwanted content in the ${phase}`, { runId, scores })
    else context.abort(`Rejected by ${this.id}: the ${phase} has ${names.join(', ')}`, { metadata: { phase, scores } })
  }
}

function questionOf(categories: readonly string[]): string {
  return 'You moderate a conversation. For each of these categories say how surely the material as a whole belongs to it: '
    + `${categories.join(', ')}.`
}

function schemaOf(categories: readonly string[]) {
  const category = {
    type: 'object',
    properties: { name: { type: 'string', enum: [...categories] }, score: { type: 'number' } },
    required: ['name', 'score'],
    additionalProperties: false,
  }
  return {
    type: 'object' as const,
    properties: { categories: { type: 'array', items: category } },
    required: ['categories'],
    additionalProperties: false,
  }
}
