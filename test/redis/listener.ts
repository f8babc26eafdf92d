import { RedisBus } from '../../src/bus/redis/index.ts'

/** A process with a connection to the bus, which tells its parent what it receives. */
const [url = '', keyPrefix = ''] = process.argv.slice(2)
const bus = new RedisBus({ url, keyPrefix })
await bus.connect({
  namespace: 'one',
  id: 'listener',
  handler: {
    onMessage: (message) => void process.send?.(message),
    onLoss: () => void process.send?.({ kind: 'lost' }),
    wantsLowLatency: () => true,
  },
})
// The bus alone does not keep a process alive.
process.on('disconnect', () => process.exit())
process.on('message', () => {})
process.send?.({ kind: 'connected' })
