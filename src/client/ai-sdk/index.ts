export { answersWhatWaits, type ChatMessage } from './chat-message.ts'
export { HeedChatTransport, type HeedChatTransportOptions } from './transport.ts'
export { uiChunks, type HeedDataTypes, type UIChunk, type WaitingForData } from './ui-chunks.ts'
