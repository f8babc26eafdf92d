import { report } from '../../harness/side.mjs'
import { instantModel, textParts } from '../../instant-model.mjs'
import { peerAgent } from '../../threads/peer.mjs'
import { reads } from './reads.mjs'

const answer = textParts(1)
const { memory } = peerAgent(instantModel(() => answer))
report(await reads(memory, 100))
