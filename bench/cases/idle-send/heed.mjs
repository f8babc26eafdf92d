import { report } from '../../harness/side.mjs'
import { heedAgent } from '../../threads/heed.mjs'
import { model, turns } from './turns.mjs'

report(await turns(await heedAgent(model)))
