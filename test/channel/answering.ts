import { Channel, Contacts, directChannel, type ChannelAdapter, type ChannelOptions, type ChannelReply, type DirectChannel, type InboundMessage } from '../../src/channel/index.ts'
import { Agent, InMemoryStore, silentLogger, type AgentConfig, type Heed, type HeedConfig, type ReplyRecord } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, type Script, type ScriptedModel } from '../../src/testing/index.ts'
import { opened } from '../watch/watching.ts'

interface Setting extends Omit<Partial<HeedConfig>, 'agents' | 'channels'> {
  script?: Script
  agent?: Partial<AgentConfig>
  channel?: Partial<ChannelOptions>
  /** What the provider does with a reply; by default it sends it. */
  send?: (reply: ChannelReply) => Promise<{ providerId?: string }>
  file?: string
}

interface Answering {
  heed: Heed
  agent: Agent
  adapter: DirectChannel
  model: ScriptedModel
  /** What the provider was asked to send. */
  sent: Array<Omit<ChannelReply, 'abortSignal'>>
  replies(): Promise<ReplyRecord[]>
  /** State, and reason or text, of each reply. */
  states(): Promise<string[]>
}

/** An agent that answers the messages of a channel. */
export function answering({ script = () => 'Fine.', agent: own, channel: more, send, file, ...config }: Setting = {}): Answering {
  const sent: Answering['sent'] = []
  const adapter = directChannel({
    kind: 'sms',
    send: async (reply) => {
      const { abortSignal: _, ...rest } = reply
      sent.push(rest)
      return send ? send(reply) : { providerId: `sent-${sent.length}` }
    },
  })
  const model = scriptedModel(script)
  const agent = new Agent({ id: 'assistant', model, ...own } as AgentConfig)
  const contacts = new Contacts([{ id: 'mum', addresses: [{ kind: 'sms', address: '+15550100' }] }])
  const channel = new Channel({ id: 'phone', adapter, resourceId: 'ada', contacts, mode: 'message', agent, ...more })
  const clock = config.clock ? { clock: config.clock } : {}
  const storage = file === undefined ? new InMemoryStore(clock) : new LibSQLStore({ url: `file:${file}`, ...clock })
  const heed = opened({ agents: { assistant: agent }, storage, channels: [channel], logger: silentLogger, ...config })
  return { heed, agent, adapter, model, sent, ...reader(heed) }
}

/** The same on an adapter of a provider. */
export function through(adapter: ChannelAdapter, config: Partial<HeedConfig> = {}, script: Script = () => 'Fine.') {
  const model = scriptedModel(script)
  const agent = new Agent({ id: 'assistant', model })
  const channel = new Channel({ id: 'there', adapter, resourceId: 'ada', mode: 'message', agent })
  const storage = new InMemoryStore(config.clock ? { clock: config.clock } : {})
  const heed = opened({ agents: { assistant: agent }, storage, channels: [channel], logger: silentLogger, ...config })
  return { heed, agent, channel, model, ...reader(heed) }
}

function reader(heed: Heed): Pick<Answering, 'replies' | 'states'> {
  const replies = async () => (await heed.channels.listReplies()).replies
  return { replies, states: async () => (await replies()).map(({ state, reason, text }) => [state, reason ?? text].filter((part) => part !== undefined).join(' ')) }
}

export function said(providerId: string, text = 'Are you there?', more: Partial<InboundMessage> = {}): InboundMessage {
  return { providerId, sender: { address: '+15550100', verified: true }, text, ...more }
}
