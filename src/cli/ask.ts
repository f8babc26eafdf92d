import { createInterface } from 'node:readline/promises'

/** Asks on the terminal until the answer is yes or no. No when the input ends, undefined when the signal ends the wait. */
export async function askYesNo(question: string, signal: AbortSignal): Promise<boolean | undefined> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  // In raw mode the terminal sends Ctrl-C as a character: hand it on as the signal that it stands for.
  terminal.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  const ended = new Promise<string>((resolve) => terminal.once('close', () => resolve('no\n')))
  try {
    for (;;) {
      const answer = await Promise.race([terminal.question(question, { signal }), ended])
      if (answer.endsWith('\n')) process.stdout.write(answer)
      if (/^\s*y(es)?\s*$/i.test(answer)) return true
      if (/^\s*no?\s*$/i.test(answer)) return false
    }
  } catch (error) {
    if (!signal.aborted) throw error
    process.stdout.write('\n')
    return undefined
  } finally {
    terminal.close()
  }
}
