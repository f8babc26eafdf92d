export { RedisBus, type RedisBusOptions } from './bus.ts'
export type { RedisClient } from './link.ts'
