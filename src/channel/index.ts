/** Channels: adapters of providers, messages and contacts. */
export { Channel, type ChannelOptions } from './channel.ts'
export type { ChannelAdapter, ChannelAnswer, ChannelDelivery, ChannelReply, ChannelRequest, SentReply } from './adapter.ts'
export { checkMessage, messageLimits, type InboundAttachment, type InboundMessage, type InboundSender } from './message.ts'
export { normalAddress } from './address.ts'
export { Contacts, countsFor, type Contact, type ContactAddress, type ResolvedContact } from './contacts.ts'
export {
  standardWebhook, type MappedMessage, type ReceivedWebhook, type StandardWebhookOptions, type WebhookReplies,
} from './adapters/standard-webhook.ts'
export { twilioSms, type TwilioSmsOptions } from './adapters/twilio-sms.ts'
export { telegramBot, type TelegramBotOptions } from './adapters/telegram-bot.ts'
export { slackEvents, type SlackEventsOptions } from './adapters/slack-events.ts'
export { emailWebhook, type EmailWebhookOptions, type ReceivedMail } from './adapters/email-webhook.ts'
export type { MailHeader } from './adapters/email-headers.ts'
export { directChannel, type DirectChannel, type DirectChannelOptions } from './adapters/direct-channel.ts'
