import { describe, expect, it } from 'vitest'
import { Agent, createTool, Memory } from '../../src/index.ts'
import { commonPrefix, fingerprint, type Fingerprint } from '../../src/prompt/explain.ts'
import { scriptedModel, type ScriptedCall } from '../../src/testing/index.ts'
import { openHeed, placeKinds, type Place } from '../thread/places.ts'
import { idle, texts } from '../thread/said.ts'

const target = { threadId: 'chat', resourceId: 'ada' }
const ask = { memory: { thread: 'chat', resource: 'ada' } }
const turns = 200
const low = 20

/** Looks something up in every third turn, keeps something in mind in every tenth, and answers. */
function step({ prompt, index }: ScriptedCall) {
  const last = prompt.at(-1)
  const asked = texts(prompt).findLast((text) => /^user: Turn \d+/.test(text)) ?? ''
  const turn = Number(/Turn (\d+)/.exec(asked)?.[1] ?? 0)
  const since = texts(prompt).slice(texts(prompt).lastIndexOf(asked) + 1)
  if (last?.role === 'tool' || since.some((text) => text.startsWith('tool: '))) return `Done with ${turn} at ${index}.`
  if (turn % 10 === 4) return { toolCalls: [{ toolName: 'updateWorkingMemory', input: { memory: `# Notes\n- turn: ${turn}\n- kept: yes` } }] }
  if (turn % 3 === 1) return { toolCalls: [{ toolName: 'look', input: { at: turn } }] }
  return `Answer to ${turn} at ${index}.`
}

const birds = ['falcon', 'heron', 'wren', 'plover', 'siskin', 'dunlin', 'gannet', 'merlin', 'osprey', 'curlew']

async function converse(place: Place) {
  const prompts: Fingerprint[][] = []
  const seen = { blocks: 0, notifications: 0, summaries: 0 }
  const open = () => {
    const model = scriptedModel(step)
    let steer: (() => void) | undefined
    const look = createTool({
      id: 'look',
      description: 'Looks.',
      execute: async () => {
        steer?.()
        return { seen: 'the sea' }
      },
    })
    const agent = new Agent({ id: 'guide', instructions: 'Be brief.', model, tools: { look }, memory: new Memory({ lastMessages: low, workingMemory: { enabled: true } }) })
    const heed = openHeed({ agent }, place.store())
    return { agent, heed, model, onLook: (send: (() => void) | undefined) => (steer = send) }
  }
  const note = (model: ReturnType<typeof open>['model']) => {
    for (const { prompt } of model.calls) prompts.push(prompt.map(fingerprint))
    const shown = new Set(model.calls.flatMap(({ prompt }) => texts(prompt)))
    for (const [kind, begin] of [['blocks', '<recalled-messages>'], ['notifications', '<notification '], ['summaries', '<notification-summary ']] as const) {
      seen[kind] += [...shown].filter((text) => text.startsWith(`user: ${begin}`)).length
    }
  }
  let now = open()
  for (let turn = 0; turn < turns; turn += 1) {
    if (turn === turns / 2) {
      note(now.model)
      await now.heed.close()
      now = open()
    }
    const { agent, onLook } = now
    if (turn % 4 === 0) {
      const lane = ['editor', 'browser', 'build'][(turn / 4) % 3] ?? ''
      const mode = turn % 24 < 12 ? ('snapshot' as const) : ('delta' as const)
      await agent.sendStateSignal({ id: lane, cacheKey: `${lane}-${turn}`, mode, contents: `${lane} at ${turn}` }, { ...target, ifIdle: { behavior: 'persist' } })
    }
    const news = (priority: 'medium' | 'high') => agent.sendNotificationSignal({ source: `ci-${turn}`, kind: 'ci-status', summary: `CI failed at ${turn}.`, priority }, target)
    // On an idle thread it wakes the agent; in a run of high priority it is a summary first, and comes in full afterwards.
    if (turn % 16 === 5) await news('medium')
    await idle(agent, target)
    const high = turn % 24 === 7
    let told: Promise<unknown> | undefined
    onLook(high ? () => void (told = news('high')) : turn % 6 === 1 ? () => void agent.sendMessage(`By the way, ${turn}.`, target) : undefined)
    const bird = birds[turn % birds.length]
    const text = turn % 5 === 3 && turn > 60 ? `Turn ${turn}: what did I say about the ${bird} of turn ${turn - 50}?` : `Turn ${turn}: I saw a ${bird} number ${turn} today.`
    await agent.generate(text, ask)
    await told
    await idle(agent, target)
  }
  note(now.model)
  return { prompts, seen }
}

describe.each(placeKinds())('a long conversation, $name', ({ make }) => {
  it('[P1.4] with tools, steers, notifications, lanes, working memory, recall and a restart only ever grows, but for the cuts that its window allows', { timeout: 240_000 }, async () => {
    const { prompts, seen } = await converse(make())
    let cuts = 0
    let [kept, sent] = [0, 0]
    for (const [at, next] of prompts.entries()) {
      const previous = prompts[at - 1]
      if (!previous) continue
      const { messages, ratio } = commonPrefix(previous, next)
      const bytes = previous.reduce((sum, print) => sum + Number(print.slice(print.lastIndexOf(':') + 1)), 0)
      kept += ratio * bytes
      sent += bytes
      if (messages === previous.length) continue
      // A cut: the instructions stay, and what follows is history that was shown before.
      cuts += 1
      expect(messages, `call ${at} begins like the one before it`).toBe(2)
      expect(previous, `call ${at} begins with history`).toContain(next[2])
    }
    const messages = turns * 2 + turns / 6 + seen.notifications
    expect(seen.blocks).toBeGreaterThan(10)
    expect(seen.notifications).toBeGreaterThan(15)
    expect(seen.summaries).toBeGreaterThan(5)
    expect(cuts).toBeGreaterThan(0)
    expect(cuts).toBeLessThanOrEqual(Math.ceil(messages / low))
    expect(kept / sent).toBeGreaterThan(0.88)
  })
})
