import { expect } from 'vitest'
import type { AgentConfig, LegacyOptions } from '../../../src/index.ts'
import { open, thread, type Probe } from '../probe.ts'
import { testing } from '../walked.ts'

type Start = (options: LegacyOptions, config?: Partial<AgentConfig>) => Promise<ReturnType<typeof open>>

const doors: Record<string, Start> = {
  async 'Agent.generateLegacy'(options, config) {
    const opened = open(config)
    await opened.agent.generateLegacy('Go.', options)
    return opened
  },
  async 'Agent.streamLegacy'(options, config) {
    const opened = open(config)
    await (await opened.agent.streamLegacy('Go.', options)).getFullOutput()
    return opened
  },
  async 'new Agent defaultGenerateOptionsLegacy'(options, config) {
    const opened = open({ ...config, defaultGenerateOptionsLegacy: options })
    await opened.agent.generateLegacy('Go.')
    return opened
  },
  async 'new Agent defaultStreamOptionsLegacy'(options, config) {
    const opened = open({ ...config, defaultStreamOptionsLegacy: options })
    await (await opened.agent.streamLegacy('Go.')).getFullOutput()
    return opened
  },
}

/** The older forms of options, through each call that takes them. */
export const legacy: Probe[] = Object.entries(doors).map(([door, start]) => ({
  title: `${door}: the older forms of its options`,
  async run() {
    const settings = { temperature: 0.1, topP: 0.2, topK: 3, seed: 7, presencePenalty: 0.4, frequencyPenalty: 0.5, stopSequences: ['X'] }
    const { agent, model } = await start({ ...settings, headers: { 'x-trace': '1' }, maxTokens: 9, ...thread })
    expect(model.calls[0]).toMatchObject({ ...settings, headers: { 'x-trace': '1' }, maxOutputTokens: 9 })
    expect((await (await agent.getMemory()).recall(thread)).messages).toHaveLength(2)
    let attempts = 0
    const busy = testing.scriptedModel(() => (attempts++, { error: { status: 503, headers: { 'retry-after-ms': '1' } } }), { loop: true })
    await start({ maxRetries: 1 }, { model: busy }).catch(() => {})
    expect(attempts).toBe(2)
  },
}))
