import { parseArgs } from 'node:util'
import { commonOptions, type Argument, type Command, type Option, type OptionTable } from './command.ts'
import { wrongUsage } from './failure.ts'
import { nearest } from './nearest.ts'

interface ReadArguments {
  arguments: string[]
  options: Record<string, string | string[] | boolean | undefined>
}

/** Reads what follows the words of a command. Refuses by name what the command does not take. */
export function readArguments(command: Pick<Command, 'arguments' | 'options'>, args: readonly string[]): ReadArguments {
  const table: OptionTable = { ...command.options, ...commonOptions }
  const { tokens } = parseArgs({
    args: [...args],
    strict: false,
    tokens: true,
    allowPositionals: true,
    options: Object.fromEntries(Object.entries(table).map(([name, { value, short }]) => {
      return [name, { type: value === undefined ? 'boolean' as const : 'string' as const, ...(short === undefined ? {} : { short }) }]
    })),
  })
  const read: ReadArguments = { arguments: [], options: emptyValues(table) }
  for (const token of tokens) {
    if (token.kind === 'positional') read.arguments.push(token.value)
    if (token.kind === 'option') addOption(read, table, token)
  }
  if (!read.options.help) checkCount(command.arguments ?? [], read.arguments)
  return read
}

function emptyValues(table: OptionTable): ReadArguments['options'] {
  return Object.fromEntries(Object.entries(table).map(([name, { value, repeated }]) => {
    return [name, value === undefined ? false : repeated ? [] : undefined]
  }))
}

interface OptionToken {
  name: string
  rawName: string
  value: string | undefined
  inlineValue: boolean | undefined
}

function addOption({ options }: ReadArguments, table: OptionTable, { name, rawName, value, inlineValue }: OptionToken): void {
  const option = Object.hasOwn(table, name) ? table[name] : undefined
  if (!option) {
    const near = nearest(name, Object.keys(table))
    throw wrongUsage(`there is no option ${rawName}.`, near === undefined ? undefined : `Did you mean --${near}?`)
  }
  if (option.value === undefined) {
    if (value !== undefined) throw wrongUsage(`${rawName} takes no value.`)
    options[name] = true
    return
  }
  // A value that looks like an option needs an equals sign, as in --agent=-x.
  const isOption = value !== undefined && !inlineValue && value.length > 1 && value.startsWith('-')
  if (value === undefined || isOption) throw wrongUsage(`${rawName} needs a value: ${rawName} ${option.value}.`)
  checkChoice(rawName, option, value)
  const earlier = options[name]
  if (Array.isArray(earlier)) earlier.push(value)
  else if (earlier === undefined) options[name] = value
  else throw wrongUsage(`${rawName} was given twice.`)
}

function checkChoice(rawName: string, { choices }: Option, value: string): void {
  if (!choices || choices.includes(value)) return
  const near = nearest(value, choices)
  throw wrongUsage(`${rawName} is one of ${choices.join(', ')}.`, near === undefined ? undefined : `Did you mean ${near}?`)
}

function checkCount(expected: readonly Argument[], given: readonly string[]): void {
  const missing = expected[given.length]
  if (missing && !missing.optional) throw wrongUsage(`name the ${missing.name}: ${missing.about}.`)
  const extra = given[expected.length]
  if (extra !== undefined && !expected.at(-1)?.repeated) throw wrongUsage(`there is no place for '${extra}'.`)
}

/** A whole number within bounds, as an option or a variable of the environment gives it. */
export function wholeNumber(name: string, text: string, least: number, most: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= least && value <= most)) throw wrongUsage(`${name} is a whole number from ${least} to ${most}.`)
  return value
}
