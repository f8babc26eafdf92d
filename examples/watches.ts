// Watches: a login that goes on when its code arrives by SMS, a family group for two hours, and alerts that are tagged for an hour.
import { Agent, Heed, InMemoryStore, type ModelConfig } from 'heed'
import { Channel, Contacts, directChannel } from 'heed/channels'
import { scriptedModel, virtualClock } from 'heed/testing'

type Print = (text: string) => void
const thread = { resourceId: 'user-7', threadId: 'assistant' }
const hour = 3_600_000

const wait = (input: object) => ({ toolCalls: [{ toolName: 'await_signal', input }] })
const judge = (toolName: 'complete_task' | 'report_signal', result: unknown) => ({ toolCalls: [{ toolName, input: { result } }] })
const textOf = (prompt: unknown) => JSON.stringify(prompt)

/** "Log in to my bank, and when the SMS code arrives, enter it." */
export async function bankLogin(given: ModelConfig | undefined, print: Print) {
  const model = given ?? scriptedModel([
    wait({
      description: 'the login code of the bank', expected_channels: ['sms'], expected_categories: ['verification_code'],
      result_schema: { type: 'string', pattern: '^[0-9]{6}$', maxLength: 6 },
    }),
    'I wait for the code.',
    'I entered the code 482913: you are logged in.',
  ])
  const judging = given ?? scriptedModel([judge('complete_task', '482913')])
  const assistant = new Agent({ id: 'assistant', instructions: 'You help with errands.', model, watches: { model: judging } })
  const phone = directChannel({ kind: 'sms' })
  const channel = new Channel({ id: 'phone', adapter: phone, resourceId: thread.resourceId })
  const heed = new Heed({ agents: { assistant }, channels: [channel], storage: new InMemoryStore() })
  const bank = { address: '+15550100', verified: true }

  await follow(assistant, 'Log in to my bank, and when the SMS code arrives, enter it.', print, [
    () => phone.deliver({ providerId: 'sms-1', sender: bank, text: 'Your login code is 482913. Never share it.' }),
  ])
  await heed.close()
}

/** "Keep an eye on the family group for two hours, and ping me if anyone asks for help." */
export async function familyGroup(print: Print) {
  const clock = virtualClock()
  const model = scriptedModel([
    wait({
      description: 'someone in the family asks for help', mode: 'continuous', expected_channels: ['telegram/family'], expected_contacts: ['mum', 'ben'],
      expires_in_minutes: 120, result_schema: { type: 'string', enum: ['mum', 'ben'] },
    }),
    'I keep an eye on the group.',
    'Mum asks for help in the family group.',
    'The two hours are over.',
  ])
  // A model decides this; the message is the last part of its prompt.
  const judging = scriptedModel(({ prompt }) => (textOf(prompt.at(-1)).includes('help') ? judge('report_signal', 'mum') : 'It does not.'))
  const assistant = new Agent({ id: 'assistant', model, watches: { model: judging } })
  const group = directChannel({ kind: 'telegram' })
  const contacts = new Contacts([
    { id: 'mum', addresses: [{ kind: 'telegram', address: '1001' }] }, { id: 'ben', addresses: [{ kind: 'telegram', address: '1002' }] },
  ])
  const channel = new Channel({ id: 'family', adapter: group, resourceId: thread.resourceId, contacts })
  const heed = new Heed({ agents: { assistant }, channels: [channel], storage: new InMemoryStore({ clock }), clock })
  const from = (address: string, providerId: string, text: string) => ({ providerId, sender: { address, verified: true }, text })

  await follow(assistant, 'Keep an eye on the family group for two hours, and ping me if anyone asks for help.', print, [
    () => group.deliver(from('1002', '1', 'Good morning!'), from('1001', '2', 'Can someone help me with the car?'), from('9999', '3', 'help')),
    () => clock.advance(2 * hour + 1),
  ])
  await heed.close()
}

/** "Watch the alerts channel and tag anything urgent for the next hour." */
export async function alertsChannel(print: Print) {
  const clock = virtualClock()
  const choice = (...names: string[]) => ({ type: 'string', enum: names })
  const model = scriptedModel([
    wait({
      description: 'anything urgent', mode: 'continuous', expected_channels: ['slack/alerts'], expected_categories: ['urgent'], expires_in_minutes: 60,
      result_schema: {
        type: 'object', properties: { severity: choice('high', 'critical'), area: choice('network', 'database', 'other') },
        required: ['severity', 'area'], additionalProperties: false,
      },
    }),
    'I watch the alerts.',
    'Tagged: critical, database.',
    'The hour is over.',
  ])
  const judging = scriptedModel([judge('report_signal', { severity: 'critical', area: 'database' })])
  const annotator = scriptedModel(({ prompt }) => ({
    toolCalls: [{ toolName: 'annotate_message', input: { categories: textOf(prompt).includes('down') ? ['urgent'] : [] } }],
  }))
  const assistant = new Agent({ id: 'assistant', model, watches: { model: judging } })
  const slack = directChannel({ kind: 'slack' })
  const channel = new Channel({ id: 'alerts', adapter: slack, resourceId: thread.resourceId, annotator })
  const heed = new Heed({ agents: { assistant }, channels: [channel], storage: new InMemoryStore({ clock }), clock })
  const alert = (providerId: string, text: string) => ({ providerId, sender: { address: 'T1:B7', verified: true }, text })

  await follow(assistant, 'Watch the alerts channel and tag anything urgent for the next hour.', print, [
    () => slack.deliver(alert('1', 'The backup is complete.'), alert('2', 'The primary database is down.')),
    () => clock.advance(hour + 1),
  ])
  await heed.close()
}

/** Prints what the agent answers; after each answer the next thing happens. */
async function follow(agent: Agent, request: string, print: Print, events: Array<() => Promise<void>>) {
  const subscription = await agent.subscribeToThread(thread)
  agent.sendMessage(request, thread)
  let text = ''
  for await (const chunk of subscription.stream) {
    if (chunk.type === 'text-delta') text += chunk.payload.text
    if (chunk.type === 'error') throw new Error(chunk.payload.error.message)
    if (chunk.type !== 'finish') continue
    print(text)
    text = ''
    const happen = events.shift()
    if (!happen) return
    await happen()
  }
}

export async function main(model?: ModelConfig, print: Print = console.log) {
  await bankLogin(model, print)
  if (model !== undefined) return
  await familyGroup(print)
  await alertsChannel(print)
}

if (import.meta.main) await main(process.env.OPENAI_API_KEY ? 'openai/gpt-5.5' : undefined)
