import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'

/** Another process that runs this module text, with what programs use of Heed in scope. It ends with the test. */
export function runChild(code: string): ChildProcess {
  const module = (name: string) => JSON.stringify(new URL(`../../src/${name}`, import.meta.url).href)
  const text = `
    import { Agent, createTool, Heed, Memory, silentLogger } from ${module('index.ts')}
    import { LibSQLStore } from ${module('store/sqlite/index.ts')}
    import { scriptedModel } from ${module('testing/index.ts')}
    ${code}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', text], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  onTestFinished(() => killed(child))
  return child
}

/** With SIGKILL: nothing of it runs any more. */
export async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

/** The next message of a child. */
export async function said(child: ChildProcess): Promise<unknown> {
  const [message] = await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([code]) => {
      throw new Error(`the other process ended with ${String(code)}`)
    }),
  ])
  return message
}
