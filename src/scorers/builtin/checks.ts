import { checkNames, checkText, checkWhole, refused } from '../../base/arguments.ts'
import { isObject } from '../../base/json.ts'
import { hasPart, stepsIn, textOf } from '../messages.ts'
import { createScorer, notScorable, type Scorer } from '../scorer.ts'
import type { TrajectoryStep } from '../contract.ts'
import { similarity } from './measured.ts'

/** What a check found: whether it holds, and what it saw. */
interface Found {
  holds: boolean
  saw: string
}

/** A scorer that is 1 where the check holds, and else 0. */
function check(id: string, description: string, find: (output: unknown) => Found): Scorer {
  return createScorer({ id, description })
    .analyze(({ run }) => find(run.output))
    .generateScore(({ results }) => (results.analyzeStepResult.holds ? 1 : 0))
    .generateReason(({ results }) => results.analyzeStepResult.saw)
}

function checkAnswer(id: string, description: string, holds: (text: string) => boolean): Scorer {
  return check(id, description, (output) => {
    const text = textOf(output)
    return { holds: holds(text), saw: text === '' ? 'The answer is empty.' : `The answer: ${text.slice(0, 500)}` }
  })
}

/** A check of tool calls. What is no output of an agent has none to look at. */
function checkCalls(id: string, description: string, holds: (calls: TrajectoryStep[]) => boolean): Scorer {
  return createScorer({ id, description })
    .analyze(({ run: { output } }) => {
      const calls = stepsIn(output)
      if (!calls) return notScorable('The output is no answer of an agent: it has no tool calls.')
      const names = calls.map(({ name, success }) => (success ? name : `${name} (failed)`)).join(', ')
      return { holds: holds(calls), saw: `Called ${names === '' ? 'none' : names}.` }
    })
    .generateScore(({ results }) => (results.analyzeStepResult.holds ? 1 : 0))
    .generateReason(({ results }) => results.analyzeStepResult.saw)
}

/** How a text is looked for. */
export interface TextCheckOptions {
  /** Defaults to false. */
  ignoreCase?: boolean
}

function finder(name: string, text: string, options: TextCheckOptions): (answer: string) => boolean {
  checkText(`text of checks.${name}()`, text)
  checkNames(`checks.${name}()`, options, ['ignoreCase'])
  const { ignoreCase = false } = options
  if (typeof ignoreCase !== 'boolean') throw refused('ignoreCase', 'true or false')
  const plain = (given: string) => (ignoreCase ? given.toLowerCase() : given)
  return (answer) => plain(answer).includes(plain(text))
}

function checkTools(name: string, tools: readonly string[]): void {
  const fits = Array.isArray(tools) && tools.length > 0 && tools.every((tool) => typeof tool === 'string' && tool !== '')
  if (!fits) throw refused(`tools of checks.${name}()`, 'names of tools')
}

/** Yes-or-no scorers in code, for gates and for scorers of agents: 1 where they hold, and else 0. Their ids name what they look for. */
export const checks = {
  /** The answer has this text. */
  includes(text: string, options: TextCheckOptions = {}): Scorer {
    const shown = JSON.stringify(text)
    return checkAnswer(`includes ${shown}`, `The answer has the text ${shown}.`, finder('includes', text, options))
  },
  /** The answer does not have this text. */
  excludes(text: string, options: TextCheckOptions = {}): Scorer {
    const finds = finder('excludes', text, options)
    const shown = JSON.stringify(text)
    return checkAnswer(`excludes ${shown}`, `The answer does not have the text ${shown}.`, (answer) => !finds(answer))
  },
  /** The answer is this text, apart from space around it. */
  equals(text: string): Scorer {
    checkText('text of checks.equals()', text)
    const shown = JSON.stringify(text)
    return checkAnswer(`equals ${shown}`, `The answer is ${shown}.`, (answer) => answer.trim() === text.trim())
  },
  /** The answer matches this pattern. */
  matches(pattern: RegExp): Scorer {
    if (!(pattern instanceof RegExp)) throw refused('pattern of checks.matches()', 'a regular expression')
    // A pattern with the flags g or y would begin where the last match ended.
    const own = new RegExp(pattern.source, pattern.flags.replaceAll(/[gy]/g, ''))
    return checkAnswer(`matches ${String(pattern)}`, `The answer matches ${String(pattern)}.`, (answer) => own.test(answer))
  },
  /** The wording of the answer is like that of this text, at least by `min` of 1. Defaults to 0.8. */
  similarity(text: string, options: { min?: number } = {}): Scorer {
    checkText('text of checks.similarity()', text)
    checkNames('checks.similarity()', options, ['min'])
    const { min = 0.8 } = options
    if (!(typeof min === 'number' && min >= 0 && min <= 1)) throw refused('min', 'a number from 0 to 1')
    const shown = JSON.stringify(text)
    return checkAnswer(`similar to ${shown}`, `The wording is like ${shown}.`, (answer) => similarity(answer, text) >= min)
  },
  /** The tool was called; with `times`, exactly so often; with `args`, with arguments that have these values. */
  calledTool(tool: string, options: { times?: number; args?: Readonly<Record<string, unknown>> } = {}): Scorer {
    checkTools('calledTool', [tool])
    checkNames('checks.calledTool()', options, ['times', 'args'])
    const { times, args } = options
    if (times !== undefined) checkWhole('times', times, 1)
    if (args !== undefined && !isObject(args)) throw refused('args', 'an object')
    const detail = `${times === undefined ? '' : ` ${times} times`}${args === undefined ? '' : ` with ${JSON.stringify(args)}`}`
    return checkCalls(`called ${tool}${detail}`, `The run called ${tool}${detail}.`, (calls) => {
      const count = calls.filter(({ name, toolArgs }) => name === tool && (args === undefined || hasPart(toolArgs, args))).length
      return times === undefined ? count > 0 : count === times
    })
  },
  /** The tool was not called. */
  didNotCall(tool: string): Scorer {
    checkTools('didNotCall', [tool])
    return checkCalls(`did not call ${tool}`, `The run did not call ${tool}.`, (calls) => calls.every(({ name }) => name !== tool))
  },
  /** No tool was called. */
  usedNoTools(): Scorer {
    return checkCalls('used no tools', 'The run called no tool.', (calls) => calls.length === 0)
  },
  /** The tools were called in this order; other calls may be between them. */
  toolOrder(tools: readonly string[]): Scorer {
    checkTools('toolOrder', tools)
    return checkCalls(`tool order ${tools.join(', ')}`, `The run called ${tools.join(', ')}, in this order.`, (calls) => {
      let next = 0
      for (const { name } of calls) if (name === tools[next]) next++
      return next === tools.length
    })
  },
  /** At most so many tool calls. */
  maxToolCalls(most: number): Scorer {
    checkWhole('checks.maxToolCalls()', most)
    return checkCalls(`at most ${most} tool calls`, `The run made at most ${most} tool calls.`, (calls) => calls.length <= most)
  },
  /** No tool call failed or was denied. */
  noToolErrors(): Scorer {
    return checkCalls('no tool errors', 'No tool call failed.', (calls) => calls.every(({ success }) => success))
  },
}
