export { HeedChatTransport, type HeedChatTransportOptions } from './transport.ts'
export type { HeedDataTypes } from './data-types.ts'
export { uiChunks, type UIChunk } from './ui-chunks.ts'
