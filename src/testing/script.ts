import { HeedError } from '../base/errors.ts'
import type { Script, ScriptedAnswer } from './scripted-step.ts'

/** The answer for a call, `index` being its place in the script. Throws when an array of steps has run out. */
export async function scriptedAnswer<Call>(
  script: Script<Call>,
  call: Call,
  { index, loop = false }: { index: number; loop?: boolean | undefined },
): Promise<ScriptedAnswer> {
  const step = typeof script === 'function' ? await script(call) : script[loop ? index % script.length : index]
  if (step === undefined) throw exhausted(typeof script === 'function' ? undefined : script.length, index)
  return typeof step === 'string' ? { text: step } : step
}

function exhausted(scripted: number | undefined, index: number): HeedError {
  const call = index + 1
  if (scripted === undefined) {
    return new HeedError('invalid_argument', `The script's function gave no step for call ${call}: return a string or a step.`)
  }
  return new HeedError(
    'invalid_argument',
    `The script has ${scripted} ${scripted === 1 ? 'step' : 'steps'} and this is call ${call}. ` +
      'Add a step, pass { loop: true }, or script a function.',
    { details: { scripted, call } },
  )
}
