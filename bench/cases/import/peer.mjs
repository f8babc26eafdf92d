import { report, stopwatch } from '../../harness/side.mjs'

const stop = stopwatch()
await Promise.all([import('@mastra/core/agent'), import('@mastra/memory'), import('@mastra/libsql')])
const spent = stop()
report({ ...spent, 'cpu with store': spent.cpu, rssMB: process.memoryUsage.rss() / 1_000_000 })
