import { createServer } from 'node:net'
import { Channel, directChannel } from '../../channel/index.ts'
import { HeedEditor } from '../../editor/index.ts'
import { serve, type RunningServer } from '../../http/server.ts'
import { Heed, silentLogger, type ModelConfig, type Storage } from '../../index.ts'
import type { Studio } from '../../studio/index.ts'
import { announcement } from './announcement.ts'
import { operationsAgent } from './operations-agent.ts'
import { operationsJudge, operationsScript } from './operations-script.ts'
import { tour } from './tour.ts'

export interface StudioDemo {
  storage: Storage
  studio: Studio
  /** Undefined: the script. */
  model?: ModelConfig
  /** How long a tenth of the slow job takes. */
  testMs: number
  /** The slow job ends after it. */
  whileTestsRun?: () => Promise<void>
  /** How long a word of the script takes. */
  deltaMs: number
  /** Undefined: the first free port from 4111. */
  port?: number
}

/** Serves Studio with the demo: an agent, its thread with a tour, and a phone that gets messages. */
export async function serveStudioDemo(options: StudioDemo): Promise<RunningServer & { studioUrl: string }> {
  const { storage, studio, model, testMs, deltaMs, port, whileTestsRun } = options
  const phone = directChannel({ kind: 'sms' })
  const scripted = model === undefined ? { model: operationsScript(deltaMs), judge: operationsJudge() } : { model }
  const agent = operationsAgent({ ...scripted, phone, testMs, ...(whileTestsRun ? { whileTestsRun } : {}) })
  const channel = new Channel({ id: 'phone', adapter: phone, resourceId: tour.resourceId })
  const workflows = { announcement: announcement(testMs) }
  const editor = new HeedEditor()
  const heed = new Heed({ agents: { agent }, workflows, editor, channels: [channel], storage, logger: silentLogger })
  const memory = await agent.getMemory()
  const { threadId, resourceId } = tour
  if (!(await memory.getThreadById({ threadId }))) await memory.createThread({ threadId, resourceId, title: 'Release 2.1.0' })
  const server = await serve(heed, { port: port ?? (await freePort(4111)), handleSignals: false, studio })
  return { ...server, studioUrl: `${server.url}${studio.path}/threads/${encodeURIComponent(threadId)}` }
}

/** The first port from this one that no program on this machine listens on. */
async function freePort(first: number): Promise<number> {
  for (let port = first; port < first + 100; port++) if (await isFree(port)) return port
  return 0
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer().once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
