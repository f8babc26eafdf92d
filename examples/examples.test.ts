import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { findProgram, whySkipped } from '../scripts/programs.ts'
import { scriptedModel } from '../src/testing/index.ts'
import { RedisServer } from '../test/redis/redis-server.ts'
import * as approval from './approval.ts'
import * as channels from './channels.ts'
import * as editor from './editor.ts'
import * as machines from './machines.ts'
import * as notifications from './notifications.ts'
import * as processors from './processors.ts'
import * as queue from './queue.ts'
import * as quickstart from './quickstart.ts'
import * as react from './react.ts'
import * as schedules from './schedules.ts'
import * as scorers from './scorers.ts'
import * as server from './server.ts'
import * as sources from './sources.ts'
import * as steering from './steering.ts'
import * as structuredOutput from './structured-output.ts'
import * as subagents from './subagents.ts'
import * as tools from './tools.ts'
import * as tracing from './tracing.ts'
import * as voice from './voice.ts'
import * as watches from './watches.ts'
import * as workflows from './workflows.ts'

const redis = await findProgram('redis')

const programs = {
  approval, channels, editor, machines, notifications, processors, queue, quickstart, react, schedules, scorers, server, sources, steering,
  'structured-output': structuredOutput, subagents, tools, tracing, voice, watches, workflows,
}

/** What an example prints, as it prints it. */
async function printed(main: (model: undefined, print: (text: string) => void) => Promise<unknown>): Promise<string[]> {
  const lines: string[] = []
  await main(undefined, (text) => void lines.push(text))
  return lines
}

describe('examples', () => {
  it('are all here, and each says what it shows', () => {
    const files = readdirSync(import.meta.dirname).filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    expect(files.sort()).toEqual(Object.keys(programs).map((name) => `${name}.ts`).sort())
    for (const file of files) {
      const text = readFileSync(join(import.meta.dirname, file), 'utf8')
      expect(text, file).toMatch(/^\/\/ [A-Z]\w+( output)?: .+\.\n/)
      expect(text, `${file} must import what its readers have`).not.toMatch(/from '\.\.?\//)
    }
  })

  it('workflows: a run asks, sleeps and receives an event', async () => {
    expect(await printed(workflows.main)).toEqual(['asked: {"question":"A bicycle for 400?"}', 'success: CH-1 (order-7:0:5)'])
  })

  it('quickstart: a subscriber receives the answer', async () => {
    expect(await quickstart.main()).toBe('A thread is a place where an agent lives, and where you can reach it at any time.')
  })

  it('quickstart: a model that fails is an error, not a silence', async () => {
    const broken = scriptedModel([{ error: { status: 401, message: 'This key is not valid.' } }])
    await expect(quickstart.main(broken)).rejects.toThrow('This key is not valid.')
  })

  it('editor: a draft is tried, published and rolled back', async () => {
    expect(await printed(editor.main)).toEqual([
      'from code: Answer questions about orders.',
      'bob: edit_conflict, ann was first',
      'the draft alone: Answer in one sentence. (without refund)',
      'everyone else: Answer questions about orders.',
      'published, release 1: Answer in one sentence. (without refund)',
      'instructions: null -> "Answer in one sentence."',
      'tools.refund: null -> false',
      'rolled back, release 2: Answer questions about orders.',
    ])
  })

  it('voice: the user speaks over the agent, which said what they heard', async () => {
    expect(await printed(voice.main)).toEqual([
      'user: How do I get to Sintra?', 'agent: By train.', 'agent: Or by bus, or by car, or on a horse through the hills.', '(the user heard: By train.)',
      'user: When is the next train?', 'agent: The next one leaves at ten.',
    ])
  })

  it('scorers: each case is scored, and the threshold decides', async () => {
    expect(await printed(scorers.main)).toEqual([
      'Sintra: short 1.00, keyword-coverage 1.00, tool-call-accuracy 1.00, answer-relevancy 1.00',
      'Porto: short 1.00, keyword-coverage 1.00, tool-call-accuracy 1.00, answer-relevancy 1.00',
      'Faro: short 1.00, keyword-coverage 1.00, tool-call-accuracy 0.00, answer-relevancy 0.00',
      'passed: answer-relevancy is 0.67',
    ])
  })

  it('steering: the message enters the second step of the same run', async () => {
    const { answer, outcome } = await steering.main()
    expect(answer).toBe('Let me look it up. In one sentence: the moon pulls the sea, and the earth turns under it.')
    expect(outcome).toEqual({ action: 'delivered', runId: expect.any(String) as string, step: 1 })
  })

  it('queue: one run a message, in order', async () => {
    expect(await queue.main()).toEqual(['The tests pass.', 'The changelog is complete.', 'Tagged as 2.1.0.'])
  })

  it.skipIf('missing' in redis)(`machines: a message that one accepts enters the run of the other, and both see the answer${whySkipped(redis)}`, async () => {
    const server = await RedisServer.start()
    try {
      expect(await machines.main(undefined, server.url)).toEqual({ seen: 'Take the train at nine. Or by bike, along the river.', outcome: 'delivered' })
    } finally {
      await server.end()
    }
  })

  it('approval: allowed or not, the model reads the decision and answers', async () => {
    expect(await approval.main()).toBe('Your 120 are on their way back.')
    expect(await approval.main(undefined, () => false)).toBe('I may not refund that much; a colleague will call you.')
  })

  it('tools: an error goes to the model, which corrects itself', async () => {
    expect(await tools.main()).toEqual({
      text: 'Bern will be warmer: 14 °C against 6 °C in Oslo.',
      known: ['Oslo', 'Bern'],
      steps: 3,
      log: [
        'weather failed: There is no forecast for Berne. Known: Bern, Oslo.',
        '{"city":"Oslo","celsius":6}',
        '{"city":"Bern","celsius":14}',
      ],
    })
  })

  it('structured-output: an answer that does not fit is asked for again', async () => {
    expect(await structuredOutput.main()).toEqual({ severity: 'high', components: ['export'], steps: 2 })
  })

  it('processors: the reminder is sent once, and stands where the model reads it', async () => {
    const model = scriptedModel([
      { toolCalls: [{ toolName: 'read_file', input: { path: 'ui/button.ts' } }] },
      { toolCalls: [{ toolName: 'read_file', input: { path: 'ui/field.ts' } }] },
      'Done.',
    ])
    expect(await processors.main(model)).toEqual({ text: 'Done.', reminders: ['Every label goes through t().'] })
    const reminder = '<system-reminder type="folder-rules" path="ui/AGENTS.md">Every label goes through t().</system-reminder>'
    const texts = model.calls.map(({ prompt }) => prompt.flatMap(({ role, content }) => (role === 'user' ? content : [])))
    const reminders = texts.map((parts) => parts.filter((part) => part.type === 'text' && part.text === reminder).length)
    expect(reminders).toEqual([0, 1, 1])
  })

  it('subagents: nested in the stream, remembered on a thread below', async () => {
    expect(await subagents.main()).toEqual({
      text: 'The Eiffel Tower was built from 1887 to 1889.',
      aside: 'From 1887 to 1889.',
      remembered: 2,
    })
  })

  it('server: each piece of the answer as it arrives', async () => {
    expect(await printed(server.main)).toEqual(['Take the train', ' at nine.'])
  })

  it('react: the thread grows as the answer arrives', async () => {
    const lines = await printed(react.main)
    expect(lines[0]).toBe('How do I get to Bern?')
    expect(lines.at(-1)).toBe('How do I get to Bern? | Take the train at nine.')
  })

  it('notifications: one waits, the other wakes the agent', async () => {
    expect(await printed(notifications.main)).toEqual([
      'low: summarize, pending', 'high: deliver, delivered', 'The build is broken:', ' I look at it now.',
    ])
  })

  it('sources: the event wakes the thread that subscribed to its object', async () => {
    expect(await printed(sources.main)).toEqual(['the webhook was answered with 200', 'Order 7 is paid:', ' I send it.'])
  })

  it('watches: the thread goes on with the code, pings for the family, tags alerts, and learns when the time is over', async () => {
    expect(await printed(watches.main)).toEqual([
      'I wait for the code.', 'I entered the code 482913: you are logged in.',
      'I keep an eye on the group.', 'Mum asks for help in the family group.', 'The two hours are over.',
      'I watch the alerts.', 'Tagged: critical, database.', 'The hour is over.',
    ])
  })

  it('channels: each message is answered, and a dead reply is sent again when the program wants it', async () => {
    expect(await printed(channels.main)).toEqual([
      'to +15550100: We open at nine.', 'a reply is dead: it can be retried', 'dead: provider_error 400', 'to +15550100: Yes, until six.',
    ])
  })

  it('schedules: each occurrence is a turn', async () => {
    expect(await printed(schedules.main)).toEqual(['No delays.', 'The train at nine', ' is late.'])
  })

  it('tracing: the spans of a run', async () => {
    expect(await printed(tracing.main)).toEqual(['chat scripted', 'execute_tool timetable', 'chat scripted', 'invoke_agent Guide'])
  })
})
