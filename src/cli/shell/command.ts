import type { Output } from './output.ts'

/** An option of a command. Without `value` it is a flag. */
export interface Option {
  about: string
  /** The name of its value in the help, such as `PORT`. */
  value?: string
  /** One letter. */
  short?: string
  /** The values that it takes. */
  choices?: readonly string[]
  /** It may be given several times. Needs `value`. */
  repeated?: boolean
}

/** An argument of a command, in its place. Only the last one may be repeated. */
export interface Argument {
  /** As the help names it, such as `FILE`. */
  name: string
  about: string
  optional?: boolean
  repeated?: boolean
}

export type OptionTable = Readonly<Record<string, Option>>

type ValueOf<One extends Option> = One extends { repeated: true } ? string[] : One extends { value: string } ? string | undefined : boolean

/** One call of a command, with everything that its command line says. */
interface Invocation<Options extends OptionTable = OptionTable> {
  arguments: readonly string[]
  options: { readonly [Name in keyof Options]: ValueOf<Options[Name]> }
  output: Output
  /** `--debug` was given. */
  isDebug: boolean
}

/**
 * A command of `heed`. Its file is loaded for every command line, also for the help, so that `run` imports what it needs when it is called.
 * `run` returns the exit code, or throws a `Failure`: `exitCodes` has their meaning.
 */
export interface Command<Options extends OptionTable = OptionTable> {
  /** Its words, such as `policy check`. */
  name: string
  /** One line, for the list of commands. */
  about: string
  /** Further sentences for its own help. */
  details?: string
  examples: readonly [first: string, ...others: string[]]
  arguments?: readonly Argument[]
  options?: Options
  /** The page that explains it. */
  page: string
  run: (invocation: Invocation<Options>) => Promise<number>
}

/** Makes a command whose `run` knows the types of its options. */
export function command<const Options extends OptionTable>(definition: Command<Options>): Command {
  return definition as unknown as Command
}

/** Options that every command has. */
export const commonOptions: OptionTable = {
  json: { about: 'print JSON: one object, or one a line' },
  debug: { about: 'print the stack of an error' },
  help: { about: 'print this help', short: 'h' },
}
