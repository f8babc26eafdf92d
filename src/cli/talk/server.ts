import { readFileSync } from 'node:fs'
import { isHeedError } from '../../base/errors.ts'
import { HeedClient, type AgentClient } from '../../client/index.ts'
import { exitCodes, Failure, toFailure, wrongUsage } from '../shell/failure.ts'

export interface NamedServer {
  url: string | undefined
  'key-file': string | undefined
  agent: string | undefined
  resource: string | undefined
}

interface Talk {
  agent: AgentClient
  /** The resource that was named, or that owns the thread. */
  resourceId?: string
}

const defaultUrl = 'http://127.0.0.1:4111'
/** The resource of new threads, where the key may access every resource. */
const localResource = 'local'

/** Finds the agent and the resource of a thread on the server. */
export async function talkTo(named: NamedServer, threadId: string, signal?: AbortSignal): Promise<Talk> {
  const client = clientOf(named, signal)
  return reaching(client.url, async () => {
    const agent = client.getAgent(await agentOf(client, named.agent))
    const resourceId = named.resource ?? (await resourceOf(agent, threadId))
    return { agent, ...(resourceId === undefined ? {} : { resourceId }) }
  })
}

type NamedClient = HeedClient & { url: string }

function clientOf({ url = process.env.HEED_URL || defaultUrl, 'key-file': keyFile }: NamedServer, signal?: AbortSignal): NamedClient {
  if (!URL.canParse(url) || !/^https?:/.test(url)) throw wrongUsage(`'${url}' is not the URL of a server.`, `Such as ${defaultUrl}`)
  const key = keyOf(keyFile)
  const client = new HeedClient({
    baseUrl: url, retries: 1, ...(key === undefined ? {} : { headers: { authorization: `Bearer ${key}` } }), ...(signal ? { signal } : {}),
  })
  return Object.assign(client, { url })
}

/** A key is never an argument: other users of the machine can read those. */
function keyOf(file: string | undefined): string | undefined {
  if (file === undefined) return process.env.HEED_API_KEY || undefined
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (cause) {
    throw new Failure(exitCodes.unreachable, `the key can't be read from ${file}.`, { code: 'file_not_found', cause })
  }
}

async function agentOf(client: HeedClient, named: string | undefined): Promise<string> {
  if (named !== undefined) return named
  const ids = Object.values(await client.listAgents()).map(({ id }) => id)
  const [only] = ids
  if (only !== undefined && ids.length === 1) return only
  if (only === undefined) throw new Failure(exitCodes.failed, 'the server has no agents.', { code: 'unknown_agent' })
  throw wrongUsage(`the server has ${ids.length} agents: ${ids.join(', ')}.`, 'Name one with --agent.')
}

/** The owner of a thread; undefined for a thread that does not exist yet. */
async function resourceOf(agent: AgentClient, threadId: string): Promise<string | undefined> {
  try {
    return (await agent.memory().getThreadById({ threadId })).resourceId
  } catch (error) {
    if (isHeedError(error) && (error.code === 'thread_not_found' || isResourceMissing(error))) return undefined
    throw error
  }
}

function isResourceMissing(error: unknown): boolean {
  return isHeedError(error) && error.code === 'invalid_argument' && error.details?.field === 'resourceId'
}

/** Calls with the resource of the talk. A key for every resource has to name one: a new thread is then of the resource `local`. */
export async function withResource<T>(talk: Talk, call: (resource: { resourceId?: string }) => Promise<T>): Promise<T> {
  const { resourceId } = talk
  try {
    return await call(resourceId === undefined ? {} : { resourceId })
  } catch (error) {
    if (resourceId !== undefined || !isResourceMissing(error)) throw error
    return call({ resourceId: localResource })
  }
}

/** Says what to do where the server is not reached or refuses the key. */
async function reaching<T>(url: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw explained(error, url)
  }
}

export function explained(error: unknown, url?: string): unknown {
  if (!isHeedError(error)) return error
  const { message, exitCode, options } = toFailure(error)
  const remedy = remedies[error.code]
  const details = { ...options.details, ...(url === undefined ? {} : { url }) }
  return remedy === undefined ? error : new Failure(exitCode, message, { ...options, details, remedy })
}

const remedies: Partial<Record<string, string>> = {
  unreachable: 'Start a server with heed dev or heed start, or name another with --url or HEED_URL.',
  unauthorized: 'Set HEED_API_KEY, or name a file with the key: --key-file FILE',
  forbidden: 'The key may not do this. Use one with the resource and the scope for it.',
}
