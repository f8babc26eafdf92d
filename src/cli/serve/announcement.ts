import type { Heed } from '../../heed/heed.ts'
import type { Output } from '../shell/output.ts'
import { shownFile } from './user-module.ts'

interface Announcement {
  url: string
  prefix: string
  file: string
  heed: Pick<Heed, 'listAgents'>
  /** Where Studio is served. */
  studioPath?: string
}

/** Prints the address to standard output, and the agents and what to type next to standard error. */
export function announce(output: Output, { url, prefix, file, heed, studioPath }: Announcement): void {
  const agents = Object.values(heed.listAgents()).map(({ id }) => id)
  output.note(`serving ${shownFile(file)}: ${agents.length === 0 ? 'no agents' : `agents ${agents.join(', ')}`}`)
  const studio = studioPath === undefined ? {} : { studio: `${url}${studioPath}` }
  output.answer(url, { type: 'ready', url, api: `${url}${prefix}`, ...studio, file: shownFile(file), agents, pid: process.pid })
  if (studioPath !== undefined) output.note(`Studio: ${url}${studioPath}`)
  output.note(nextSteps(url, agents))
}

/** What a person may type now. */
export function nextSteps(url: string, agents: readonly string[]): string {
  const agent = agents.length > 1 ? ` --agent ${agents[0]}` : ''
  const named = url === 'http://127.0.0.1:4111' ? '' : ` --url ${url}`
  return `next, in another terminal: npx heed send my-thread 'Hello' --wait answer${agent}${named}`
}
