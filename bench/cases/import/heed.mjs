import { heedEntry, report, stopwatch } from '../../harness/side.mjs'

const entries = [heedEntry(), heedEntry('libsql')]
const stop = stopwatch()
await Promise.all(entries.map((entry) => import(entry)))
report({ ...stop(), rssMB: process.memoryUsage.rss() / 1_000_000 })
