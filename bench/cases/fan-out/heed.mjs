import { report } from '../../harness/side.mjs'
import { heedAgent } from '../../threads/heed.mjs'
import { delivery, model } from './delivery.mjs'

report(await delivery(await heedAgent(model)))
