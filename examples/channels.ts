// Channels: an agent answers text messages, and a reply that the provider refuses at first is sent again.
import { Agent, Heed, HeedError, InMemoryStore, type ModelConfig, type ReplyRecord } from 'heed'
import { Channel, Contacts, directChannel } from 'heed/channels'
import { scriptedModel } from 'heed/testing'

type Print = (text: string) => void

export async function main(given?: ModelConfig, print: Print = console.log) {
  const model = given ?? scriptedModel(['We open at nine.', 'Yes, until six.'])
  const assistant = new Agent({ id: 'assistant', instructions: 'You answer questions about the shop, in one sentence.', model })

  // The line of a provider: twilioSms, telegramBot, slackEvents and standardWebhook send for real.
  let lines = 0
  const phone = directChannel({
    kind: 'sms',
    async send({ to, text }) {
      if (++lines === 2) throw new HeedError('provider_error', 'This number is blocked.', { details: { status: 400, maybeSent: false } })
      print(`to ${to}: ${text}`)
      return { providerId: `sms-${lines}` }
    },
  })
  const channel = new Channel({
    id: 'shop',
    adapter: phone,
    resourceId: ({ sender }) => sender.address,
    contacts: new Contacts([{ id: 'ann', addresses: [{ kind: 'sms', address: '+15550100' }] }]),
    mode: 'message',
    agent: assistant,
  })
  const heed = new Heed({ agents: { assistant }, channels: [channel], storage: new InMemoryStore(), logger: { debug() {}, info() {}, warn() {}, error: print } })

  const ann = { address: '+15550100', verified: true }
  await phone.deliver({ providerId: 'in-1', sender: ann, text: 'When do you open?' }, { providerId: 'in-2', sender: ann, text: 'On Saturdays too?' })
  let dead: ReplyRecord | undefined
  while (!dead) {
    await heed.tick()
    dead = (await heed.channels.listReplies({ state: 'dead' })).replies[0]
  }
  print(`dead: ${dead.error?.code} ${dead.error?.status}`)
  await heed.channels.retryReply({ id: dead.id })
  await heed.tick()
  await heed.close()
}

if (import.meta.main) await main(process.env.OPENAI_API_KEY ? 'openai/gpt-5.5' : undefined)
