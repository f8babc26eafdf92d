import { heedEntry, report, stopwatch } from '../../harness/side.mjs'

const [heed, store] = [heedEntry(), heedEntry('libsql')]
const stop = stopwatch()
await import(heed)
const alone = stop()
const rssMB = process.memoryUsage.rss() / 1_000_000
await import(store)
report({ ...alone, 'cpu with store': stop().cpu, rssMB })
