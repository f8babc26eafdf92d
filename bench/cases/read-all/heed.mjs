import { report } from '../../harness/side.mjs'
import { instantModel, textParts } from '../../instant-model.mjs'
import { heedAgent } from '../../threads/heed.mjs'
import { reads } from './reads.mjs'

const answer = textParts(1)
const { memory } = await heedAgent(instantModel(() => answer))
report(await reads(memory))
